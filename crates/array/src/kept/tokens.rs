//! Storing ROD tokens.

use std::collections::BTreeMap;

use format::StateKey;
use format::target_state::tokens::{StoredToken, StoredTokenMaker};
use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::state::State;

impl Array {
    /// Returns the maker of the tokens of this incarnation, and the tokens whose volumes exist;
    /// `None` if there are none.
    pub fn tokens(&self) -> Option<(StoredTokenMaker, Vec<(u64, StoredToken)>)> {
        let state = self.read();
        let (maker, tokens) = state.token_rows.of(state.host_states.incarnation())?;
        let tokens = tokens.filter(|(_, token)| state.volumes().contains_key(&token.source));
        Some((maker, tokens.map(|(id, token)| (id, token.clone())).collect()))
    }

    /// Stores tokens by their identifiers (`None`: the token has ended) and their maker, as of this
    /// incarnation; durable when it returns.
    ///
    /// # Errors
    /// Those of the store. Then nothing has changed.
    pub fn keep_tokens(
        &self,
        maker: Option<StoredTokenMaker>,
        tokens: BTreeMap<u64, Option<StoredToken>>,
    ) -> Result<(), Error> {
        let plan = |state: &State| {
            let incarnation = state.host_states.incarnation();
            let maker = maker.map(|maker| StoredTokenMaker { incarnation, ..maker });
            let rows = state.token_rows.planned(incarnation, tokens);
            let mut change = Change::default();
            let made = maker.as_ref().map(|it| (StateKey::TokenMaker.encode(), Some(it.encode())));
            change.config.extend(made);
            change.config.extend(rows.iter().map(|(id, token)| {
                (StateKey::Token(*id).encode(), token.as_ref().map(StoredToken::encode))
            }));
            Ok((change, (maker, rows)))
        };
        self.change(plan, |state, (maker, rows)| state.token_rows.stored(maker, rows))
    }
}
