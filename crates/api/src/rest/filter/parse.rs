//! The parser of filters, bounded in length and depth.

use serde_json::Number;

use super::{Field, Filter, FilterError, Index, Literal, OneOf, Operator, Step};

/// The maximum length of a filter, in bytes: several times the length of a URL that other servers
/// accept.
pub const FILTER_BYTES_MAX: usize = 16 << 10;
/// The maximum depth of parentheses, `not` and functions.
pub const FILTER_DEPTH_MAX: usize = 32;

/// The maximum number of conditions that an item is checked against, so that a list of 100,000
/// items takes well under a second. All values that a field is compared with count as one.
pub const FILTER_TERMS_MAX: usize = 32;
/// The maximum number of parts of a field: no item is that deep.
pub const FIELD_STEPS_MAX: usize = 8;

/// A token of the text.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Number(Number),
    Operator(Operator),
    Open,
    Close,
    Comma,
}

/// Parses a filter.
pub(super) fn parse(text: &str) -> Result<Filter, FilterError> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(FilterError::new(0, "it is longer than 16384 bytes"));
    }
    let tokens = Lexer { text, at: 0 }.tokens()?;
    let mut parser = Parser { tokens: &tokens, next: 0, end: text.len(), depth: 0 };
    let filter = parser.either()?;
    match parser.peek() {
        None if filter.terms() > FILTER_TERMS_MAX => Err(FilterError::new(
            0,
            "it has more than 32 conditions; values of one field, without `*`, count once",
        )),
        None => Ok(filter),
        Some(_) => Err(parser.fault("`and` or `or` is missing, or there is an extra parenthesis")),
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    /// Returns all tokens, each with its position.
    fn tokens(mut self) -> Result<Vec<(usize, Token)>, FilterError> {
        let mut tokens = Vec::new();
        loop {
            let rest = &self.text[self.at..];
            let blanks = rest.len() - rest.trim_start().len();
            self.at += blanks;
            let Some(first) = rest[blanks..].chars().next() else { return Ok(tokens) };
            let start = self.at;
            tokens.push((start, self.token(first)?));
        }
    }

    fn token(&mut self, first: char) -> Result<Token, FilterError> {
        let rest = &self.text[self.at..];
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            ',' => (Token::Comma, 1),
            '=' | '!' | '<' | '>' => self.operator(rest)?,
            '\'' | '"' => self.quoted(rest, first)?,
            '0'..='9' | '-' => self.number(rest)?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let end = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
                (Token::Word(rest[..end].to_owned()), end)
            }
            _ => return Err(FilterError::new(self.at, "this character is unexpected")),
        };
        self.at += length;
        Ok(token)
    }

    fn operator(&self, rest: &str) -> Result<(Token, usize), FilterError> {
        let known = Operator::ALL.iter().find(|operator| rest.starts_with(operator.text()));
        let operator = known.ok_or_else(|| FilterError::new(self.at, "`!` is not an operator"))?;
        Ok((Token::Operator(*operator), operator.text().len()))
    }

    /// Parses a quoted text. A backslash escapes the next character.
    fn quoted(&self, rest: &str, quote: char) -> Result<(Token, usize), FilterError> {
        let mut text = String::new();
        let mut characters = rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                _ if character == quote => return Ok((Token::Text(text), at + 1)),
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                _ => text.push(character),
            }
        }
        Err(FilterError::new(self.at, "the quote is not closed"))
    }

    fn number(&self, rest: &str) -> Result<(Token, usize), FilterError> {
        let is_of_number = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let end = rest.find(|c: char| !is_of_number(c)).unwrap_or(rest.len());
        let number = rest[..end].parse();
        let number = number.map_err(|_| FilterError::new(self.at, "this is not a number"))?;
        Ok((Token::Number(number), end))
    }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']')
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    next: usize,
    /// The length of the text, in bytes.
    end: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn fault(&self, why: &'static str) -> FilterError {
        let at = self.tokens.get(self.next).map_or(self.end, |(at, _)| *at);
        FilterError::new(at, why)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_there = self.peek() == Some(token);
        self.next += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, token: &Token, why: &'static str) -> Result<(), FilterError> {
        if self.take(token) { Ok(()) } else { Err(self.fault(why)) }
    }

    /// Takes a keyword, in any case.
    fn take_word(&mut self, wanted: &str) -> bool {
        let is_there =
            matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(wanted));
        self.next += usize::from(is_there);
        is_there
    }

    fn either(&mut self) -> Result<Filter, FilterError> {
        let mut all = vec![self.both()?];
        while self.take_word("or") {
            all.push(self.both()?);
        }
        Ok(Filter::any(all))
    }

    fn both(&mut self) -> Result<Filter, FilterError> {
        let mut all = vec![self.single()?];
        while self.take_word("and") {
            all.push(self.single()?);
        }
        Ok(Filter::all(all))
    }

    fn single(&mut self) -> Result<Filter, FilterError> {
        if self.depth == FILTER_DEPTH_MAX {
            return Err(self.fault("it is nested deeper than 32 levels"));
        }
        self.depth += 1;
        let filter = self.nested();
        self.depth -= 1;
        filter
    }

    fn nested(&mut self) -> Result<Filter, FilterError> {
        if self.take_word("not") {
            return Ok(Filter::Not(Box::new(self.single()?)));
        }
        if self.take(&Token::Open) {
            let inner = self.either()?;
            self.expect(&Token::Close, "a parenthesis is not closed")?;
            return Ok(inner);
        }
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self.fault("a field, `not` or a parenthesis is expected here"));
        };
        let at = self.next;
        self.next += 1;
        if self.peek() == Some(&Token::Open) {
            return self.function(word, at);
        }
        let field = self.field(word, at)?;
        let Some(Token::Operator(operator)) = self.peek() else {
            return Ok(Filter::Present(field));
        };
        self.next += 1;
        let mut literals = self.literals()?;
        match (operator, literals.len()) {
            (Operator::Equal, _) => Ok(Filter::OneOf(field, Box::new(OneOf::of(literals)))),
            (Operator::NotEqual, _) => {
                Ok(Filter::Not(Box::new(Filter::OneOf(field, Box::new(OneOf::of(literals))))))
            }
            (_, 1) => Ok(Filter::Compare(field, *operator, literals.swap_remove(0))),
            _ => Err(self.fault("a list is allowed only after `=` and `!=`")),
        }
    }

    fn function(&mut self, word: &str, at: usize) -> Result<Filter, FilterError> {
        if !word.eq_ignore_ascii_case("contains") {
            self.next = at;
            return Err(self.fault("the only function is `contains(FIELD, 'TEXT')`"));
        }
        self.expect(&Token::Open, "a parenthesis is expected here")?;
        let at = self.next;
        let Some(Token::Word(word)) = self.peek() else {
            return Err(self.fault("a field is expected here"));
        };
        self.next += 1;
        let field = self.field(word, at)?;
        self.expect(&Token::Comma, "a comma is expected here")?;
        let Some(Token::Text(text)) = self.peek() else {
            return Err(self.fault("a quoted text is expected here"));
        };
        self.next += 1;
        self.expect(&Token::Close, "a parenthesis is not closed")?;
        Ok(Filter::Contains(field, text.to_lowercase()))
    }

    /// Parses one literal, or several in parentheses.
    fn literals(&mut self) -> Result<Vec<Literal>, FilterError> {
        if !self.take(&Token::Open) {
            return Ok(vec![self.literal()?]);
        }
        let mut literals = vec![self.literal()?];
        while self.take(&Token::Comma) {
            literals.push(self.literal()?);
        }
        self.expect(&Token::Close, "a list is not closed, or a comma is missing in it")?;
        Ok(literals)
    }

    fn literal(&mut self) -> Result<Literal, FilterError> {
        let literal = match self.peek() {
            Some(Token::Text(text)) => Literal::Text(text.to_lowercase()),
            Some(Token::Number(number)) => Literal::Number(number.clone()),
            Some(Token::Word(word)) => match word.to_ascii_lowercase().as_str() {
                "true" => Literal::Bool(true),
                "false" => Literal::Bool(false),
                "null" => Literal::Null,
                _ => return Err(self.fault("a text must be quoted")),
            },
            _ => return Err(self.fault("a value is expected here: 'TEXT', a number, true, false")),
        };
        self.next += 1;
        Ok(literal)
    }

    /// Parses a field: `a.b[all].c`.
    fn field(&self, word: &str, at: usize) -> Result<Field, FilterError> {
        let at = self.tokens.get(at).map_or(self.end, |(at, _)| *at);
        if word.split('.').count() > FIELD_STEPS_MAX {
            return Err(FilterError::new(at, "this field has more than 8 parts"));
        }
        let steps = word.split('.').map(|part| {
            let (name, index) = match part.split_once('[') {
                None => (part, Index::Any),
                Some((name, "any]")) => (name, Index::Any),
                Some((name, "all]")) => (name, Index::All),
                Some(_) => return None,
            };
            let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            (starts && !name.contains([']', '['])).then(|| Step { name: name.to_owned(), index })
        });
        let steps: Option<Vec<Step>> = steps.collect();
        steps.map(Field).ok_or_else(|| FilterError::new(at, "this is not a field"))
    }
}
