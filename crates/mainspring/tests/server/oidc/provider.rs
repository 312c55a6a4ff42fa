//! A test provider of OpenID Connect with real keys and configurable faults.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD as BASE64_URL},
};
use mainspring_kernel::{json::compact, value::Value};
use ring::{
    digest, hmac,
    rand::SystemRandom,
    rsa,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256},
};

/// The client id and the client secret of the server.
pub(crate) const CLIENT: &str = "flows of ours";
pub(crate) const SECRET: &str = "s3cret+/ of ours";

/// A key with its published id.
pub(crate) enum Key {
    Rsa(String, rsa::KeyPair),
    P256(String, EcdsaKeyPair),
    Ed25519(String, Ed25519KeyPair),
}

impl Key {
    /// An RSA key from a file, since generating one is slow.
    pub(crate) fn rsa(kid: &str) -> Self {
        let pem = include_str!("only-for-tests.pem");
        let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
        let der = BASE64_STANDARD.decode(base64).unwrap();
        Self::Rsa(kid.into(), rsa::KeyPair::from_pkcs8(&der).unwrap())
    }

    pub(crate) fn p256(kid: &str) -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        Self::P256(kid.into(), pair)
    }

    pub(crate) fn ed25519(kid: &str) -> Self {
        let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(kid.into(), Ed25519KeyPair::from_pkcs8(der.as_ref()).unwrap())
    }

    fn head(&self) -> (&'static str, &str) {
        match self {
            Self::Rsa(kid, _) => ("RS256", kid),
            Self::P256(kid, _) => ("ES256", kid),
            Self::Ed25519(kid, _) => ("EdDSA", kid),
        }
    }

    /// The public key.
    pub(crate) fn public(&self) -> Vec<u8> {
        match self {
            Self::Rsa(_, pair) => pair.public_key().as_ref().to_vec(),
            Self::P256(_, pair) => pair.public_key().as_ref().to_vec(),
            Self::Ed25519(_, pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    fn jwk(&self) -> Value {
        let text = |bytes: &[u8]| Value::from(BASE64_URL.encode(bytes).as_str());
        let more: Vec<(&str, Value)> = match self {
            Self::Rsa(_, pair) => {
                let public = rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public());
                vec![("kty", "RSA".into()), ("n", text(&public.n)), ("e", text(&public.e))]
            }
            Self::P256(..) => {
                let point = self.public();
                let [x, y] = [text(&point[1..33]), text(&point[33..])];
                vec![("kty", "EC".into()), ("crv", "P-256".into()), ("x", x), ("y", y)]
            }
            Self::Ed25519(..) => {
                vec![("kty", "OKP".into()), ("crv", "Ed25519".into()), ("x", text(&self.public()))]
            }
        };
        let (algorithm, kid) = self.head();
        let head = [("alg", Value::from(algorithm)), ("kid", kid.into()), ("use", "sig".into())];
        Value::map(head.into_iter().chain(more))
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(_, pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).unwrap();
                signature
            }
            Self::P256(_, pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(_, pair) => pair.sign(message).as_ref().to_vec(),
        }
    }
}

/// The signature of ID tokens.
pub(crate) enum Sign {
    /// By the published key.
    Key,
    /// Unsigned, with `alg: none`.
    None,
    /// By HMAC with a text that is publicly known.
    Shared(Vec<u8>),
    /// By an unpublished key, under the published key id.
    Other(Box<Key>),
}

/// The behavior of responses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// Accepts connections without responding.
    Silent,
    /// Never ends.
    Endless,
    NoJson,
    /// Redirects.
    Elsewhere,
}

/// The configuration, which can change at any time.
pub(crate) struct Ways {
    pub(crate) keys: Vec<Key>,
    pub(crate) sign: Sign,
    pub(crate) mood: Mood,
    /// Claims of ID tokens that replace the defaults; null omits a claim.
    pub(crate) claims: BTreeMap<&'static str, Value>,
    /// The issuer in the metadata, if it differs.
    pub(crate) calls_itself: Option<String>,
    /// The public URL, if it differs.
    pub(crate) public: Option<String>,
    /// The token endpoint in the metadata, if it differs.
    pub(crate) token_endpoint: Option<String>,
    /// True if the client secret is expected in the form, and not in a header.
    pub(crate) takes_forms: bool,
    /// True if the redirect URI of a code is checked.
    pub(crate) looks_at_addresses: bool,
    /// Requests for the keys.
    pub(crate) asked_for_keys: usize,
    /// Issued codes with nonce, challenge and redirect URI.
    codes: BTreeMap<String, [String; 3]>,
    /// Connections that are kept open.
    open: Vec<TcpStream>,
}

/// A running provider, which lives as long as the test process.
#[derive(Clone)]
pub(crate) struct Provider {
    pub(crate) address: String,
    ways: Arc<Mutex<Ways>>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ways = Ways {
            keys: vec![Key::rsa("first")],
            sign: Sign::Key,
            mood: Mood::Well,
            claims: BTreeMap::new(),
            calls_itself: None,
            public: None,
            token_endpoint: None,
            takes_forms: false,
            looks_at_addresses: true,
            asked_for_keys: 0,
            codes: BTreeMap::new(),
            open: Vec::new(),
        };
        let address = listener.local_addr().unwrap().to_string();
        let provider = Self { address, ways: Arc::new(Mutex::new(ways)) };
        let own = provider.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                std::thread::spawn(move || own.answer(stream));
            }
        });
        provider
    }

    pub(crate) fn issuer(&self) -> String {
        self.ways().public.clone().unwrap_or_else(|| format!("http://{}", self.address))
    }

    pub(crate) fn ways(&self) -> MutexGuard<'_, Ways> {
        self.ways.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sets the claims of ID tokens.
    pub(crate) fn claims(&self, claims: &[(&'static str, Value)]) {
        self.ways().claims = claims.iter().cloned().collect();
    }

    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_string()),
            }
        }
        let of = |name: &str| {
            let line = lines.iter().find_map(|line| line.split_once(':').filter(|(n, _)| n.eq_ignore_ascii_case(name)));
            line.map(|(_, value)| value.trim().to_string())
        };
        let length = of("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let target = lines.first()?.split(' ').nth(1)?.to_string();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        if path != "/authorize" {
            let mut ways = self.ways();
            match ways.mood {
                Mood::Well => {}
                Mood::Silent => {
                    ways.open.push(stream);
                    return Some(());
                }
                Mood::NoJson => return reply(&mut stream, "200 OK", "", "<p>hello</p>"),
                Mood::Elsewhere => {
                    let to = format!("location: http://{}/somewhere\r\n", self.address);
                    return reply(&mut stream, "302 Found", &to, "");
                }
                Mood::Endless => {
                    drop(ways);
                    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"a\": \"").ok()?;
                    while stream.write_all(&[b'a'; 4096]).is_ok() {}
                    return None;
                }
            }
        }
        let json = |stream: &mut TcpStream, status: &str, value: &Value| reply(stream, status, "", &compact(value));
        match path {
            "/.well-known/openid-configuration" => json(&mut stream, "200 OK", &self.description()),
            "/jwks" => {
                let mut ways = self.ways();
                ways.asked_for_keys += 1;
                let keys = Value::List(ways.keys.iter().map(Key::jwk).collect());
                json(&mut stream, "200 OK", &Value::map([("keys", keys)]))
            }
            "/authorize" => {
                let to = format!("location: {}\r\n", self.consent(&fields(query))?);
                reply(&mut stream, "302 Found", &to, "")
            }
            "/token" => {
                let done = self.redeem(&of("authorization"), &fields(std::str::from_utf8(&body).ok()?));
                match done {
                    Ok(answer) => json(&mut stream, "200 OK", &answer),
                    Err(error) => json(&mut stream, "400 Bad Request", &Value::map([("error", Value::from(error))])),
                }
            }
            _ => reply(&mut stream, "404 Not Found", "", ""),
        }
    }

    fn description(&self) -> Value {
        let issuer = self.issuer();
        let at = |path: &str| Value::from(format!("{issuer}{path}").as_str());
        let ways = self.ways();
        let called = ways.calls_itself.clone().unwrap_or_else(|| issuer.clone());
        let begins = format!("http://{}/authorize?tenant=a", self.address);
        let methods = ways.takes_forms.then(|| Value::List(vec!["client_secret_post".into()]));
        let methods = methods.map(|methods| ("token_endpoint_auth_methods_supported", methods));
        let usual = [
            ("issuer", Value::from(called.as_str())),
            ("authorization_endpoint", begins.as_str().into()),
            ("token_endpoint", ways.token_endpoint.as_deref().map_or_else(|| at("/token"), Value::from)),
            ("jwks_uri", at("/jwks")),
        ];
        Value::map(usual.into_iter().chain(methods))
    }

    /// Consents at once.
    fn consent(&self, asked: &BTreeMap<String, String>) -> Option<String> {
        let is = |name: &str, value: &str| assert_eq!(asked.get(name).map(String::as_str), Some(value), "{asked:?}");
        is("tenant", "a");
        is("response_type", "code");
        is("client_id", CLIENT);
        is("code_challenge_method", "S256");
        is("scope", "openid email profile");
        let of = |name: &str| asked.get(name).cloned();
        let issuer = encoded(&self.issuer());
        let mut ways = self.ways();
        let code = format!("code-{}", ways.codes.len());
        ways.codes.insert(code.clone(), [of("nonce")?, of("code_challenge")?, of("redirect_uri")?]);
        // Further parameters, as real providers add them.
        let more = "session_state=1&authuser=0";
        Some(format!("{}?code={code}&state={}&iss={issuer}&{more}", of("redirect_uri")?, encoded(&of("state")?)))
    }

    /// Redeems a code once for an ID token.
    fn redeem(&self, given: &Option<String>, form: &BTreeMap<String, String>) -> Result<Value, &'static str> {
        let ours = BASE64_STANDARD.encode(format!("{}:{}", encoded(CLIENT), encoded(SECRET)));
        let of = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let issuer = self.issuer();
        let mut ways = self.ways();
        let by_form = given.is_none() && of("client_id") == CLIENT && of("client_secret") == SECRET;
        let by_header = given.as_deref() == Some(&format!("Basic {ours}")) && of("client_secret").is_empty();
        if !(if ways.takes_forms { by_form } else { by_header }) {
            return Err("invalid_client");
        }
        let [nonce, challenge, to] = ways.codes.insert(of("code").into(), Default::default()).ok_or("invalid_grant")?;
        let shown = BASE64_URL.encode(digest::digest(&digest::SHA256, of("code_verifier").as_bytes()));
        let fits = of("redirect_uri") == to || !ways.looks_at_addresses;
        if shown != challenge || !fits || of("grant_type") != "authorization_code" {
            return Err("invalid_grant");
        }
        let token = ways.token(&issuer, &nonce);
        let token_type = ("token_type", Value::from("Bearer"));
        Ok(Value::map([("access_token", Value::from("at")), token_type, ("id_token", token.as_str().into())]))
    }
}

impl Ways {
    fn token(&self, issuer: &str, nonce: &str) -> String {
        let now = now_s();
        let usual = [
            ("iss", Value::from(issuer)),
            ("sub", "248289761001".into()),
            ("aud", CLIENT.into()),
            ("nonce", nonce.into()),
            ("iat", now.into()),
            ("exp", (now + 300).into()),
            ("email", "ada@example.com".into()),
            ("email_verified", true.into()),
        ];
        let mut claims: BTreeMap<&str, Value> = usual.into_iter().collect();
        claims.extend(self.claims.iter().map(|(name, value)| (*name, value.clone())));
        claims.retain(|_, value| *value != Value::Null);
        let key = self.keys.last().unwrap();
        let (algorithm, kid) = match &self.sign {
            Sign::Key => key.head(),
            Sign::Other(other) => (other.head().0, key.head().1),
            Sign::None => ("none", key.head().1),
            Sign::Shared(_) => ("HS256", key.head().1),
        };
        let head = Value::map([("alg", Value::from(algorithm)), ("kid", kid.into()), ("typ", "JWT".into())]);
        let part = |value: &Value| BASE64_URL.encode(compact(value));
        let message = format!("{}.{}", part(&head), part(&Value::map(claims)));
        let signature = match &self.sign {
            Sign::Key => key.sign(message.as_bytes()),
            Sign::Other(other) => other.sign(message.as_bytes()),
            Sign::None => Vec::new(),
            Sign::Shared(secret) => {
                hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message.as_bytes()).as_ref().to_vec()
            }
        };
        format!("{message}.{}", BASE64_URL.encode(signature))
    }
}

/// Seconds since the epoch.
pub(crate) fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &str) -> Option<()> {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).ok()
}

fn fields(text: &str) -> BTreeMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

pub(crate) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
