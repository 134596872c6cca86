import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * A request with java.net.http.HttpClient. Arguments: the certificate of the authority, the version (1.1 or 2), `get`, `post` or
 * `expect` (a POST with 100-continue), the URL, and the length of the body to send. Prints the version and status of the response,
 * the length of its body and its SHA-256; or `error` and the reason.
 */
public class JavaClient {
    public static void main(String[] arguments) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            store.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        System.out.println(request(tls, arguments[1], arguments[2], arguments[3], Integer.parseInt(arguments[4])));
        // Threads of the clients would keep the program.
        System.exit(0);
    }

    private static String request(SSLContext tls, String version, String kind, String url, int length) throws Exception {
        HttpClient.Version wanted = version.equals("2") ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
        HttpClient client = HttpClient.newBuilder().version(wanted).sslContext(tls).build();
        // Without it, the client waits for 100-continue for ever.
        HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(10));
        byte[] body = new byte[length];
        Arrays.fill(body, (byte) 'j');
        if (!kind.equals("get")) {
            builder.POST(BodyPublishers.ofByteArray(body)).expectContinue(kind.equals("expect"));
        }
        try {
            HttpResponse<byte[]> response = client.send(builder.build(), BodyHandlers.ofByteArray());
            String digest = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(response.body()));
            return response.version() + " " + response.statusCode() + " " + response.body().length + " " + digest;
        } catch (Exception error) {
            return "error " + error;
        }
    }
}
