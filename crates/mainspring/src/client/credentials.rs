//! The tokens that this user has stored, one per server, in a file that is readable by its owner only.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use mainspring_kernel::{
    json::{self, pretty},
    value::{Map, Value},
};

use super::address::Address;
use crate::{error::CliError, paths};

/// The credential for one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    pub(crate) token: String,
    /// True if the token may be sent over plain HTTP although the server is another machine.
    pub(crate) plain_http: bool,
}

/// The stored credentials, by the address of the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials(BTreeMap<String, Credential>);

impl Credentials {
    /// Reads the user's file. A missing file contains no credentials.
    pub(crate) fn load() -> Result<Self, CliError> {
        Self::read(&file()?)
    }

    /// The credential for a server.
    pub(crate) fn of(&self, address: &Address) -> Option<&Credential> {
        self.0.get(&address.to_string())
    }

    /// The address of the only server with a credential; `None` if there are several or none.
    pub(crate) fn only(&self) -> Option<&str> {
        if self.0.len() == 1 { self.0.keys().next().map(String::as_str) } else { None }
    }

    /// Sets or removes the credential for a server. Returns true if there was one.
    pub(crate) fn put(&mut self, address: &Address, credential: Option<Credential>) -> bool {
        match credential {
            Some(credential) => self.0.insert(address.to_string(), credential).is_some(),
            None => self.0.remove(&address.to_string()).is_some(),
        }
    }

    /// Writes the user's file atomically.
    pub(crate) fn store(&self) -> Result<PathBuf, CliError> {
        let file = file()?;
        self.write(&file).map_err(|error| refused(&file, &format!("it cannot be written: {error}")))?;
        Ok(file)
    }

    fn read(file: &Path) -> Result<Self, CliError> {
        let metadata = match fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            found => found.map_err(|error| refused(file, &error.to_string()))?,
        };
        if metadata.permissions().mode() & 0o077 != 0 {
            let why = format!("others may read it, and it has tokens: `chmod 600 {}`", file.display());
            return Err(refused(file, &why));
        }
        let bytes = fs::read(file).map_err(|error| refused(file, &error.to_string()))?;
        let form = || refused(file, "it is not a file of `mainspring login`; move it away and sign in again");
        let stored = json::value(&bytes).map_err(|_| form())?;
        let servers = stored.get("servers").and_then(Value::as_map).ok_or_else(form)?;
        let mut credentials = BTreeMap::new();
        for (address, entry) in servers {
            let token = entry.get("token").and_then(Value::as_text).ok_or_else(form)?.to_string();
            let plain_http = entry.get("plainHttp").is_some_and(|value| *value == Value::Bool(true));
            credentials.insert(address.clone(), Credential { token, plain_http });
        }
        Ok(Self(credentials))
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let entry = |credential: &Credential| {
            let mut map = Map::from([("token".to_string(), Value::from(credential.token.as_str()))]);
            if credential.plain_http {
                map.insert("plainHttp".into(), true.into());
            }
            Value::Map(map)
        };
        let servers = Value::map(self.0.iter().map(|(address, credential)| (address.clone(), entry(credential))));
        let text = pretty(&Value::map([("servers", servers)])) + "\n";
        let folder = file.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let draft = file.with_extension(format!("json.{}", std::process::id()));
        // A draft that a killed process left is removed and not opened: it could be a link to another file.
        let _ = fs::remove_file(&draft);
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        let written = out.write_all(text.as_bytes()).and_then(|()| out.sync_all());
        written.and_then(|()| fs::rename(&draft, file)).inspect_err(|_| drop(fs::remove_file(&draft)))
    }
}

/// The path of the user's file, which need not exist.
pub(crate) fn file() -> Result<PathBuf, CliError> {
    let home = paths::config_home().ok_or_else(|| {
        CliError::bad_input(
            "no_config_folder",
            "neither XDG_CONFIG_HOME nor HOME is set: set one of them, or MAINSPRING_TOKEN",
        )
    })?;
    Ok(home.join("mainspring/credentials.json"))
}

fn refused(file: &Path, why: &str) -> CliError {
    CliError::bad_input("bad_credentials", format!("the credentials in {}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_readable_only_by_their_owner() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mainspring/credentials.json");
        assert_eq!(Credentials::read(&file).unwrap(), Credentials::default());
        let (one, other) = (Address::parse("http://127.0.0.1:1").unwrap(), Address::parse("https://h/x").unwrap());
        let credential = |token: &str, plain_http| Credential { token: token.into(), plain_http };
        let mut stored = Credentials::default();
        assert!(!stored.put(&one, Some(credential("a", false))));
        assert_eq!(stored.only(), Some("http://127.0.0.1:1"));
        assert!(!stored.put(&other, Some(credential("b", true))));
        stored.write(&file).unwrap();
        stored.write(&file).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no draft is left");
        let mut read = Credentials::read(&file).unwrap();
        assert_eq!(read, stored);
        assert_eq!((read.of(&other), read.only()), (Some(&credential("b", true)), None));
        assert!(read.put(&other, None) && !read.put(&other, None));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Credentials::read(&file).unwrap_err().failure.message.contains("chmod 600"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file, "{\"servers\": {\"a\": {}}}").unwrap();
        assert!(Credentials::read(&file).unwrap_err().failure.message.contains("sign in again"));
    }
}
