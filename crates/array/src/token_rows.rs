//! ROD tokens, as another controller finds them after a takeover. Those of earlier incarnations
//! mean nothing, and go with the next change.

use std::collections::BTreeMap;

use block::VolumeId;
use format::StateKey;
use format::target_state::tokens::{StoredToken, StoredTokenMaker};
use store::Change;

use crate::state::State;
use crate::{Array, Error};

/// Rows of earlier incarnations that go with a change.
const STALE_ROWS_MAX: usize = 256;

/// The stored tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenRows {
    maker: Option<StoredTokenMaker>,
    tokens: BTreeMap<u64, StoredToken>,
}

impl TokenRows {
    pub(crate) fn load_maker(&mut self, value: &[u8]) -> Result<(), Error> {
        let found = StoredTokenMaker::decode(value);
        self.maker = Some(found.map_err(|error| Error::Damaged(error.to_string()))?);
        Ok(())
    }

    pub(crate) fn load(&mut self, id: u64, value: &[u8]) -> Result<(), Error> {
        let found = StoredToken::decode(value);
        self.tokens.insert(id, found.map_err(|error| Error::Damaged(error.to_string()))?);
        Ok(())
    }

    fn stale(&self, incarnation: u64) -> Vec<u64> {
        let stale = self.tokens.iter().filter(|(_, token)| token.incarnation != incarnation);
        stale.map(|(id, _)| *id).take(STALE_ROWS_MAX).collect()
    }
}

impl Array {
    /// What has made the tokens of this incarnation, and the tokens whose volumes exist. `None` if
    /// it has made none.
    pub fn tokens(&self) -> Option<(StoredTokenMaker, Vec<(u64, StoredToken)>)> {
        let state = self.state.read();
        let now = state.host_states.incarnation();
        let maker = state.token_rows.maker.clone().filter(|maker| maker.incarnation == now)?;
        let exists = |volume: VolumeId| state.volumes.contains_key(&volume);
        let tokens = state.token_rows.tokens.iter();
        let tokens = tokens.filter(|(_, it)| it.incarnation == now && exists(it.source));
        Some((maker, tokens.map(|(id, token)| (*id, token.clone())).collect()))
    }

    /// Stores tokens, by their identifiers, or that they have ended (`None`), and what makes them,
    /// as this incarnation's; durable when it returns.
    ///
    /// # Errors
    /// Those of the store. Nothing has changed then.
    pub fn keep_tokens(
        &self,
        maker: Option<StoredTokenMaker>,
        tokens: BTreeMap<u64, Option<StoredToken>>,
    ) -> Result<(), Error> {
        let plan = |state: &State| {
            let incarnation = state.host_states.incarnation();
            let maker = maker.map(|maker| StoredTokenMaker { incarnation, ..maker });
            let stale = state.token_rows.stale(incarnation).into_iter().map(|id| (id, None));
            let mut rows: BTreeMap<_, _> = stale.collect();
            rows.extend(
                tokens.into_iter().map(|(id, token)| {
                    (id, token.map(|token| StoredToken { incarnation, ..token }))
                }),
            );
            // One that could not be made durable ends as well.
            rows.retain(|id, row| row.is_some() || state.token_rows.tokens.contains_key(id));
            let mut change = Change::default();
            let made = maker.as_ref().map(|it| (StateKey::TokenMaker.encode(), Some(it.encode())));
            change.config.extend(made);
            change.config.extend(rows.iter().map(|(id, token)| {
                (StateKey::Token(*id).encode(), token.as_ref().map(StoredToken::encode))
            }));
            Ok((change, (maker, rows)))
        };
        self.change(plan, |state, (maker, rows)| {
            let stored = &mut state.token_rows;
            stored.maker = maker.or(stored.maker.take());
            for (id, token) in rows {
                match token {
                    Some(token) => drop(stored.tokens.insert(id, token)),
                    None => drop(stored.tokens.remove(&id)),
                }
            }
        })
    }
}
