//! Trusted certificate authorities of this process as a client: Mozilla's list, which is in the binary, and a file.

use std::{path::Path, sync::Arc};

use crate::error::CliError;

use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Names a file of further certificate authorities. OpenSSL uses the same variable.
pub(crate) const AUTHORITIES_VARIABLE: &str = "SSL_CERT_FILE";

/// Trusts Mozilla's authorities and those of the file that the environment names.
pub(crate) fn trusting() -> Result<Arc<ClientConfig>, CliError> {
    let Some(file) = std::env::var_os(AUTHORITIES_VARIABLE).filter(|file| !file.is_empty()) else {
        return Ok(trusting_mozilla());
    };
    let file = Path::new(&file);
    trusting_also(file).map_err(|why| {
        CliError::bad_input("bad_certificates", format!("{AUTHORITIES_VARIABLE}: {}: {why}", file.display()))
    })
}

/// Trusts Mozilla's authorities only.
pub(crate) fn trusting_mozilla() -> Arc<ClientConfig> {
    config(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
}

/// Trusts Mozilla's authorities and those of a PEM file, for servers with certificates of an organization's own
/// authority.
pub(crate) fn trusting_also(file: &Path) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let read = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
    let mut count = 0;
    for certificate in read {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
        count += 1;
    }
    if count == 0 { Err("it contains no certificate".into()) } else { Ok(config(roots)) }
}

fn config(roots: RootCertStore) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("ring speaks what rustls calls safe");
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
}
