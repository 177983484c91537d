import java.security.KeyManagementException;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.util.List;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.TrustManager;
import org.apache.tomcat.util.net.SSLContext;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.apache.tomcat.util.net.SSLUtil;
import org.apache.tomcat.util.net.jsse.JSSEImplementation;
import org.apache.tomcat.util.net.jsse.JSSEUtil;

/** The JDK's TLS for Tomcat, with engines that are timed. */
public final class TimedImplementation extends JSSEImplementation {
    @Override
    public SSLUtil getSSLUtil(SSLHostConfigCertificate certificate) {
        return new JSSEUtil(certificate) {
            @Override
            public SSLContext createSSLContextInternal(List<String> protocols)
                    throws NoSuchAlgorithmException {
                return new TimedContext(super.createSSLContextInternal(protocols));
            }
        };
    }

    private static final class TimedContext implements SSLContext {
        private final SSLContext inner;

        TimedContext(SSLContext inner) {
            this.inner = inner;
        }

        @Override
        public SSLEngine createSSLEngine() {
            return new TimedEngine(inner::createSSLEngine);
        }

        @Override
        public void init(KeyManager[] keys, TrustManager[] trust, SecureRandom random)
                throws KeyManagementException {
            inner.init(keys, trust, random);
        }

        @Override
        public void destroy() {
            inner.destroy();
        }

        @Override
        public SSLSessionContext getServerSessionContext() {
            return inner.getServerSessionContext();
        }

        @Override
        public SSLServerSocketFactory getServerSocketFactory() {
            return inner.getServerSocketFactory();
        }

        @Override
        public SSLParameters getSupportedSSLParameters() {
            return inner.getSupportedSSLParameters();
        }

        @Override
        public X509Certificate[] getCertificateChain(String alias) {
            return inner.getCertificateChain(alias);
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return inner.getAcceptedIssuers();
        }
    }
}
