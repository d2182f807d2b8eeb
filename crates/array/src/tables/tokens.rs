//! The stored ROD tokens, which another controller uses after a takeover. Tokens of earlier
//! incarnations are void; later changes remove their rows.

use std::collections::BTreeMap;

use format::target_state::tokens::{StoredToken, StoredTokenMaker};

use crate::error::Error;

/// The maximum number of rows of earlier incarnations that one change removes.
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

    /// Returns the maker of the tokens of an incarnation, and the tokens; `None` if there are none.
    pub(crate) fn of(
        &self,
        incarnation: u64,
    ) -> Option<(StoredTokenMaker, impl Iterator<Item = (u64, &StoredToken)>)> {
        let maker = self.maker.clone().filter(|maker| maker.incarnation == incarnation)?;
        let tokens = self.tokens.iter().filter(move |(_, it)| it.incarnation == incarnation);
        Some((maker, tokens.map(|(id, token)| (*id, token))))
    }

    /// Returns the rows to store: these tokens (`None`: the token has ended), and the removal of
    /// some of earlier incarnations.
    pub(crate) fn planned(
        &self,
        incarnation: u64,
        tokens: BTreeMap<u64, Option<StoredToken>>,
    ) -> BTreeMap<u64, Option<StoredToken>> {
        let mut rows: BTreeMap<_, _> =
            self.stale(incarnation).into_iter().map(|id| (id, None)).collect();
        let of_now = |token: StoredToken| StoredToken { incarnation, ..token };
        rows.extend(tokens.into_iter().map(|(id, token)| (id, token.map(of_now))));
        // A token that was never stored has no row to remove.
        rows.retain(|id, row| row.is_some() || self.tokens.contains_key(id));
        rows
    }

    /// Records that these rows are stored.
    pub(crate) fn stored(
        &mut self,
        maker: Option<StoredTokenMaker>,
        rows: BTreeMap<u64, Option<StoredToken>>,
    ) {
        self.maker = maker.or(self.maker.take());
        for (id, token) in rows {
            match token {
                Some(token) => drop(self.tokens.insert(id, token)),
                None => drop(self.tokens.remove(&id)),
            }
        }
    }
}
