// Go's net/http: a client that prints what came, and a server without TLS that speaks HTTP/1.1 and h2c.
//
//	p_nethttp server ADDR
//	p_nethttp get    1.1|2|h2c URL CA.pem
//	p_nethttp post   1.1|2|h2c URL CA.pem BYTES [expect]
//
// A client prints the protocol, the status, the bytes of the body with their SHA-256, and the trailers.
package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"time"
)

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Protocols of a side: 1.1, 2 (with TLS), or h2c.
func protocols(name string) *http.Protocols {
	var set http.Protocols
	switch name {
	case "1.1":
		set.SetHTTP1(true)
	case "2":
		set.SetHTTP2(true)
	case "h2c":
		set.SetUnencryptedHTTP2(true)
	default:
		die(fmt.Errorf("unknown version `%s` (expected 1.1, 2 or h2c)", name))
	}
	return &set
}

func serve(address string) {
	both := protocols("1.1")
	both.SetUnencryptedHTTP2(true)
	mux := http.NewServeMux()
	// The body is as long as the path says, and the trailer has its digest.
	mux.HandleFunc("GET /bytes/{len}", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.Atoi(r.PathValue("len"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Trailer", "X-Digest")
		body := bytes.Repeat([]byte("0123456789abcdef"), count/16+1)[:count]
		w.WriteHeader(http.StatusOK)
		for rest := body; len(rest) > 0; {
			piece := rest[:min(len(rest), 100_000)]
			if _, err := w.Write(piece); err != nil {
				return
			}
			rest = rest[len(piece):]
		}
		w.Header().Set("X-Digest", fmt.Sprintf("%x", sha256.Sum256(body)))
	})
	// The response is what arrived: protocol, length, digest, and the client's trailer.
	mux.HandleFunc("POST /up", func(w http.ResponseWriter, r *http.Request) {
		digest := sha256.New()
		count, err := io.Copy(digest, r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s %d %x trailer=%s", r.Proto, count, digest.Sum(nil), r.Trailer.Get("X-Digest"))
	})
	server := &http.Server{Addr: address, Handler: mux, Protocols: both}
	die(server.ListenAndServe())
}

// A body that declares a trailer and fills it at its end.
type withTrailer struct {
	io.Reader
	digest  []byte
	request *http.Request
}

func (body *withTrailer) Read(into []byte) (int, error) {
	count, err := body.Reader.Read(into)
	if err == io.EOF {
		body.request.Trailer.Set("X-Digest", fmt.Sprintf("%x", body.digest))
	}
	return count, err
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "server" {
		serve(os.Args[2])
	}
	if len(os.Args) < 5 {
		die(fmt.Errorf("missing arguments"))
	}
	authority, err := os.ReadFile(os.Args[4])
	die(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := &http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{
			Protocols:             protocols(os.Args[2]),
			TLSClientConfig:       &tls.Config{RootCAs: roots},
			ExpectContinueTimeout: 10 * time.Second,
		},
	}
	request, err := http.NewRequest("GET", os.Args[3], nil)
	die(err)
	if os.Args[1] == "post" {
		count, err := strconv.Atoi(os.Args[5])
		die(err)
		content := bytes.Repeat([]byte("fedcba9876543210"), count/16+1)[:count]
		digest := sha256.Sum256(content)
		body := &withTrailer{Reader: bytes.NewReader(content), digest: digest[:]}
		request, err = http.NewRequest("POST", os.Args[3], body)
		die(err)
		body.request = request
		request.Trailer = http.Header{"X-Digest": nil}
		if len(os.Args) > 6 {
			request.Header.Set("Expect", "100-continue")
		}
		fmt.Printf("sent %x\n", digest)
	}
	response, err := client.Do(request)
	die(err)
	body, err := io.ReadAll(response.Body)
	die(err)
	fmt.Printf("%s %d %d %x\n", response.Proto, response.StatusCode, len(body), sha256.Sum256(body))
	if len(body) < 300 {
		fmt.Printf("body %s\n", body)
	}
	names := make([]string, 0)
	for name := range response.Trailer {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("trailer %s %s\n", name, response.Trailer.Get(name))
	}
}
