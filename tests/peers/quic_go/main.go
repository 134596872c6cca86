// quic-go: HTTP/3 server and client. `/<n>[k|m|g]` has that many bytes; TLS names the folder with cert.pem and key.pem.
//
//	p_quicgo server ADDR
//	p_quicgo get    ADDR PATH [FILE]
//	p_quicgo load   ADDR PATH N CONNS STREAMS
//	p_quicgo hs     ADDR PATH N CONC full|resume|0rtt
package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func size(p string) int {
	p = strings.TrimPrefix(p, "/")
	m := 1
	switch {
	case strings.HasSuffix(p, "k"):
		m = 1 << 10
	case strings.HasSuffix(p, "m"):
		m = 1 << 20
	case strings.HasSuffix(p, "g"):
		m = 1 << 30
	}
	n, _ := strconv.Atoi(strings.TrimRight(p, "kmg"))
	return n * m
}

func qconf() *quic.Config {
	return &quic.Config{Allow0RTT: true, MaxIncomingStreams: 1000,
		InitialStreamReceiveWindow: 16 << 20, MaxStreamReceiveWindow: 16 << 20,
		InitialConnectionReceiveWindow: 64 << 20, MaxConnectionReceiveWindow: 64 << 20}
}

func die(e error) {
	if e != nil {
		fmt.Fprintln(os.Stderr, e)
		os.Exit(1)
	}
}

func serve(addr string) {
	dir := os.Getenv("TLS")
	cert, e := tls.LoadX509KeyPair(dir+"/cert.pem", dir+"/key.pem")
	die(e)
	block := make([]byte, 256<<10)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := size(r.URL.Path)
		w.Header().Set("Content-Length", strconv.Itoa(n))
		for n > 0 {
			k := min(n, len(block))
			if _, e := w.Write(block[:k]); e != nil {
				return
			}
			n -= k
		}
	})
	s := http3.Server{Addr: addr, Handler: h, QUICConfig: qconf(),
		TLSConfig: http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{cert}, CurvePreferences: []tls.CurveID{tls.X25519}})}
	die(s.ListenAndServe())
}

func transport(cache tls.ClientSessionCache) *http3.Transport {
	return &http3.Transport{QUICConfig: qconf(),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", ClientSessionCache: cache, CurvePreferences: []tls.CurveID{tls.X25519}}}
}

var sink io.Writer = io.Discard

func get(t *http3.Transport, url, method string) (int64, error) {
	r, e := http.NewRequestWithContext(context.Background(), method, url, nil)
	if e != nil {
		return 0, e
	}
	p, e := t.RoundTrip(r)
	if e != nil {
		return 0, e
	}
	defer p.Body.Close()
	if p.StatusCode != 200 {
		return 0, fmt.Errorf("status %d", p.StatusCode)
	}
	return io.Copy(sink, p.Body)
}

func report(what string, reqs, bytes int64, t time.Time) {
	fmt.Printf("%s reqs=%d bytes=%d s=%.3f\n", what, reqs, bytes, time.Since(t).Seconds())
}

func main() {
	a := os.Args
	switch a[1] {
	case "server":
		serve(a[2])
	case "get":
		if len(a) > 4 {
			f, e := os.Create(a[4])
			die(e)
			sink = f
		}
		t := time.Now()
		n, e := get(transport(nil), "https://"+a[2]+a[3], "GET")
		die(e)
		report("get", 1, n, t)
	case "load":
		n, _ := strconv.Atoi(a[4])
		conns, _ := strconv.Atoi(a[5])
		streams, _ := strconv.Atoi(a[6])
		left, reqs, bytes := int64(n), int64(0), int64(0)
		var wg sync.WaitGroup
		t := time.Now()
		for range conns {
			tr := transport(nil)
			for range streams {
				wg.Go(func() {
					for atomic.AddInt64(&left, -1) >= 0 {
						k, e := get(tr, "https://"+a[2]+a[3], "GET")
						die(e)
						atomic.AddInt64(&reqs, 1)
						atomic.AddInt64(&bytes, k)
					}
				})
			}
		}
		wg.Wait()
		report("load", reqs, bytes, t)
	case "hs":
		n, _ := strconv.Atoi(a[4])
		conc, _ := strconv.Atoi(a[5])
		var cache tls.ClientSessionCache
		method := "GET"
		if a[6] != "full" {
			cache = tls.NewLRUClientSessionCache(1000)
		}
		if a[6] == "0rtt" {
			method = http3.MethodGet0RTT
		}
		one := func() int64 {
			tr := transport(cache)
			k, e := get(tr, "https://"+a[2]+a[3], method)
			die(e)
			tr.Close()
			return k
		}
		if cache != nil {
			tr := transport(cache)
			_, e := get(tr, "https://"+a[2]+a[3], "GET")
			die(e)
			time.Sleep(100 * time.Millisecond)
			tr.Close()
		}
		left, reqs, bytes := int64(n), int64(0), int64(0)
		var wg sync.WaitGroup
		t := time.Now()
		for range conc {
			wg.Go(func() {
				for atomic.AddInt64(&left, -1) >= 0 {
					k := one()
					atomic.AddInt64(&reqs, 1)
					atomic.AddInt64(&bytes, k)
				}
			})
		}
		wg.Wait()
		report("hs-"+a[6], reqs, bytes, t)
	}
}
