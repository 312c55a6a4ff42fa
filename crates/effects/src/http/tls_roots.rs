//! The trusted certificate authorities.

use std::{fmt, sync::Arc};

use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Mozilla's certificate authorities, and those that an operator adds.
///
/// The authorities of the machine are not used: a workflow should trust the same servers on every machine, containers
/// often have no authorities, and a step could change a file of the system.
#[derive(Clone)]
pub struct TlsRoots(RootCertStore);

impl fmt::Debug for TlsRoots {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "TlsRoots({} authorities)", self.0.len())
    }
}

impl Default for TlsRoots {
    fn default() -> Self {
        Self(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
    }
}

impl TlsRoots {
    /// Adds the certificates of a PEM text. The error says what is wrong with it.
    pub fn with_authorities(mut self, pem: &str) -> Result<Self, String> {
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            count += 1;
            let added = certificate.map_err(|error| error.to_string());
            let added = added.and_then(|certificate| self.0.add(certificate).map_err(|error| error.to_string()));
            added.map_err(|why| format!("certificate {count} cannot be read: {why}"))?;
        }
        match count {
            0 => Err("there is no certificate in the text: give PEM, from BEGIN CERTIFICATE on".into()),
            _ => Ok(self),
        }
    }

    /// Builds the TLS configuration: TLS 1.2 or 1.3, HTTP/2 if the server supports it.
    pub(super) fn into_config(self) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("ring speaks what rustls calls safe");
        let mut config = builder.with_root_certificates(self.0).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_authorities_extend_the_mozilla_roots() {
        let before = TlsRoots::default().0.len();
        let pem = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap().cert.pem();
        assert_eq!(TlsRoots::default().with_authorities(&(pem.clone() + &pem)).unwrap().0.len(), before + 2);
        assert!(before > 50);
        for (wrong, why) in [
            (String::new(), "no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned(), "certificate 1"),
            (pem.replacen("MII", "", 1), "certificate 1"),
            (pem.replacen("-----END", "", 1), "certificate 1"),
        ] {
            let error = TlsRoots::default().with_authorities(&wrong).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
