//! Basic authentication with bcrypt hashes.
//!
//! bcrypt is slow on purpose, so results are remembered: a scrape costs one
//! check when the agent has started, and none later. Whoever tries passwords
//! gets at most a quarter of one CPU, and holds up none of those who are known.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::HeaderValue;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::Semaphore;

/// Results of each kind that are remembered.
const REMEMBERED: usize = 1000;
/// After a check the next one waits this many times as long as it took.
const PAUSE: u32 = 3;
/// The rest of the hash that is checked where a user is not known: a salt and a
/// result that no password is likely to have.
const DECOY: &str = "QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

/// Who is let in.
#[derive(Debug)]
pub(super) struct Users {
    hashes: HashMap<String, String>,
    decoy: String,
    /// Passwords are remembered by a code that is worth nothing elsewhere.
    key: Option<hmac::Key>,
    known: Mutex<Known>,
    /// One check at a time.
    turn: Arc<Semaphore>,
}

/// Results of checks.
#[derive(Debug, Default)]
struct Known {
    right: Remembered,
    wrong: Remembered,
}

/// The last codes, up to a bound.
#[derive(Debug, Default)]
struct Remembered {
    codes: HashSet<Code>,
    order: VecDeque<Code>,
}

/// Stands for a name and a password.
type Code = [u8; 32];

impl Remembered {
    fn add(&mut self, code: Code) {
        if !self.codes.insert(code) {
            return;
        }
        self.order.push_back(code);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.codes.remove(&oldest);
        }
    }
}

impl Users {
    /// Users with their names, bcrypt hashes and the costs of these.
    pub(super) fn new(users: Vec<(String, String, u32)>) -> Self {
        let cost = users.iter().map(|(_, _, cost)| *cost).max().unwrap_or(10);
        let hashes = users.into_iter().map(|(user, hash, _)| (user, hash));
        Self {
            hashes: hashes.collect(),
            decoy: format!("$2y${cost:02}${DECOY}"),
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok(),
            known: Mutex::default(),
            turn: Arc::new(Semaphore::new(1)),
        }
    }

    /// Whether an Authorization header has the name and the password of one of
    /// them. An unknown name takes as long as the dearest hash.
    pub(super) async fn admit(self: &Arc<Self>, authorization: Option<&HeaderValue>) -> bool {
        let Some((user, password)) = authorization.and_then(credentials) else {
            return false;
        };
        let code = self.code(&user, &password);
        if let Some(known) = self.remembered(code) {
            return known;
        }
        let Ok(turn) = Arc::clone(&self.turn).acquire_owned().await else {
            return false;
        };
        // Others may have asked the same while this one waited.
        if let Some(known) = self.remembered(code) {
            return known;
        }
        let users = Arc::clone(self);
        // Goes on if the client leaves: its next request finds the result.
        let checked = tokio::spawn(async move {
            let begun = Instant::now();
            let asked = Arc::clone(&users);
            let checked = tokio::task::spawn_blocking(move || asked.check(&user, &password));
            let right = checked.await.unwrap_or(false);
            users.remember(code, right);
            tokio::spawn(async move {
                tokio::time::sleep(begun.elapsed() * PAUSE).await;
                drop(turn);
            });
            right
        });
        checked.await.unwrap_or(false)
    }

    fn check(&self, user: &str, password: &[u8]) -> bool {
        let hash = self.hashes.get(user);
        let fits = bcrypt::verify(password, hash.unwrap_or(&self.decoy));
        hash.is_some() && fits.unwrap_or(false)
    }

    /// None where there is no key, which is where the system has no random
    /// numbers: then nothing is remembered.
    fn code(&self, user: &str, password: &[u8]) -> Option<Code> {
        let mut context = hmac::Context::with_key(self.key.as_ref()?);
        context.update(&(user.len() as u64).to_be_bytes());
        context.update(user.as_bytes());
        context.update(password);
        context.sign().as_ref().try_into().ok()
    }

    fn remembered(&self, code: Option<Code>) -> Option<bool> {
        let code = code?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.right.codes.contains(&code) {
            return Some(true);
        }
        known.wrong.codes.contains(&code).then_some(false)
    }

    fn remember(&self, code: Option<Code>, right: bool) {
        let Some(code) = code else {
            return;
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if right {
            known.right.add(code);
        } else {
            known.wrong.add(code);
        }
    }
}

/// Name and password of an Authorization header (RFC 7617, 2).
fn credentials(header: &HeaderValue) -> Option<(String, Vec<u8>)> {
    let (scheme, encoded) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let password = decoded.split_off(colon + 1);
    decoded.pop();
    Some((String::from_utf8(decoded).ok()?, password))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    /// Of the cheapest kind, for `secret`.
    fn users() -> Arc<Users> {
        let hash = bcrypt::hash("secret", 4).unwrap();
        Arc::new(Users::new(vec![("al".into(), hash, 4)]))
    }

    fn header(user: &str, password: &str) -> HeaderValue {
        let encoded = BASE64_STANDARD.encode(format!("{user}:{password}"));
        HeaderValue::from_str(&format!("Basic {encoded}")).unwrap()
    }

    fn admitted(users: &Arc<Users>, header: &HeaderValue) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(users.admit(Some(header)))
    }

    #[test]
    fn only_the_right_password_of_a_known_user_is_let_in() {
        let users = users();
        // Twice: checked, and remembered.
        for _ in 0..2 {
            assert!(admitted(&users, &header("al", "secret")));
            assert!(!admitted(&users, &header("al", "Secret")));
            assert!(!admitted(&users, &header("al", "")));
            assert!(!admitted(&users, &header("bo", "secret")));
            assert!(!admitted(&users, &header("", "")));
        }
        assert_eq!(users.known.lock().unwrap().right.codes.len(), 1);
        assert_eq!(users.known.lock().unwrap().wrong.codes.len(), 4);
    }

    #[test]
    fn what_is_remembered_is_not_checked_again() {
        let users = users();
        let right = header("al", "secret");
        assert!(admitted(&users, &right));
        // No turn is to be had any more.
        users.turn.close();
        assert!(admitted(&users, &right));
        assert!(!admitted(&users, &header("al", "else")));
    }

    #[test]
    fn headers_that_are_none_are_refused() {
        let users = users();
        let encoded = BASE64_STANDARD.encode("al:secret");
        for text in ["", "Basic", "Basic ", "Basic !", "Basic YWw="] {
            let header = HeaderValue::from_str(text).unwrap();
            assert!(!admitted(&users, &header), "{text}");
        }
        let bearer = HeaderValue::from_str(&format!("Bearer {encoded}")).unwrap();
        assert!(!admitted(&users, &bearer));
        let small = HeaderValue::from_str(&format!("basic {encoded}")).unwrap();
        assert!(admitted(&users, &small));
    }

    /// The decoy is a hash, of the cost that the users' have: its check is not
    /// over at once.
    #[test]
    fn an_unknown_name_is_checked_against_a_hash_of_the_same_cost() {
        let hash = bcrypt::hash("x", 6).unwrap();
        let users = Users::new(vec![("al".into(), hash, 6)]);
        let decoy: bcrypt::HashParts = users.decoy.parse().unwrap();
        assert_eq!(decoy.get_cost(), 6);
        assert!(!bcrypt::verify("x", &users.decoy).unwrap());
    }

    #[test]
    fn remembered_passwords_are_bounded() {
        let mut remembered = Remembered::default();
        for n in 0..REMEMBERED * 3 {
            let mut code = Code::default();
            code[..8].copy_from_slice(&n.to_be_bytes());
            remembered.add(code);
            remembered.add(code);
        }
        assert_eq!(remembered.codes.len(), REMEMBERED);
        assert_eq!(remembered.order.len(), REMEMBERED);
    }
}
