//! Text of the Common Formula Language into expressions whose kinds fit.

use crate::limit;
use crate::query::error::QueryError;
use crate::query::expression::{Comparison, Formula, Operator, TextTest};
use crate::query::field::{Column, Field, Value, ValueType};
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SourceInfo, operators};
use cel::parser::Parser;
use std::collections::BTreeMap;

/// Deepest nesting of an expression; also of keys that are made of other keys.
const MAX_DEPTH: u16 = limit::MAX_EXPRESSION_DEPTH as u16;

/// Expressions with a name, as keys are.
pub(crate) type NamedExpressions = BTreeMap<String, (Formula, ValueType)>;

/// Makes expressions of texts.
#[derive(Debug, Default)]
pub(crate) struct Compiler {
    named: NamedExpressions,
    /// Parts whose answers are kept.
    n_kept: usize,
    /// Parts of all expressions so far: one that has a name counts wherever it is used.
    n_parts: usize,
}

/// One text while it is made into an expression.
struct SourceText<'a> {
    compiler: &'a mut Compiler,
    source: &'a str,
    info: SourceInfo,
    /// Parts of it so far that have names.
    n_parts: usize,
}

impl Compiler {
    /// A compiler that knows expressions by name: in any order, but none by way of itself.
    pub(crate) fn new(keys: &BTreeMap<String, String>) -> Result<Self, QueryError> {
        let mut compiler = Self::default();
        if keys.len() > limit::MAX_OWN_KEYS {
            return Err(QueryError::OwnKeys { max: limit::MAX_OWN_KEYS });
        }
        let mut open: Vec<(&String, &String)> = keys.iter().collect();
        while !open.is_empty() {
            let n_open = open.len();
            let mut failed = None;
            for (name, text) in std::mem::take(&mut open) {
                if Field::named(name).is_some() {
                    return Err(QueryError::Taken(name.clone()));
                }
                match compiler.expression(text) {
                    Ok(compiled) => drop(compiler.named.insert(name.clone(), compiled)),
                    Err(error) => {
                        failed.get_or_insert(error);
                        open.push((name, text));
                    }
                }
            }
            if let Some(error) = failed.filter(|_| open.len() == n_open) {
                return Err(error);
            }
        }
        Ok(compiler)
    }

    /// The field of a name, or the expression that has it.
    pub(crate) fn named(&self, name: &str) -> Option<(Formula, ValueType)> {
        let field = Field::named(name).map(|field| (Formula::Field(field), field.kind()));
        field.or_else(|| self.named.get(name).cloned())
    }

    /// The names that an expression may use.
    fn names(&self) -> String {
        let own: String = self.named.keys().map(|name| format!(" {name}")).collect();
        Field::names() + &own
    }

    /// An expression that is true or false.
    pub(crate) fn filter(&mut self, text: &str) -> Result<Formula, QueryError> {
        let (expression, kind) = self.expression(text)?;
        if kind == ValueType::Bool {
            return Ok(expression);
        }
        let message = format!("a filter is true or false; this is {}", kind.text());
        Err(QueryError::Expression { expression: text.to_owned(), column: 1, message })
    }

    /// An expression and the kind of its values.
    pub(crate) fn expression(&mut self, text: &str) -> Result<(Formula, ValueType), QueryError> {
        let wrong = |column: usize, message: String| QueryError::Expression {
            expression: text.to_owned(),
            column,
            message,
        };
        if text.chars().count() > limit::MAX_EXPRESSION_CHARS {
            let message = format!("longer than {} characters", limit::MAX_EXPRESSION_CHARS);
            return Err(wrong(1, message));
        }
        let readable = without_reserved(text);
        let parser = Parser::new().max_recursion_depth(MAX_DEPTH);
        let parsed = parser.parse_with_source_info(&readable);
        let (parsed, info) = parsed.map_err(|errors| match errors.errors.first() {
            Some(first) => {
                let column = usize::try_from(first.pos.1).unwrap_or(0).saturating_add(1);
                let message = first.msg.replace(STAND_IN, RESERVED);
                wrong(column.min(text.chars().count() + 1), message)
            }
            None => wrong(1, "no expression".to_owned()),
        })?;
        let mut text = SourceText { compiler: self, source: text, info, n_parts: 0 };
        let (expression, kind) = text.of(&parsed, 0)?;
        text.n_parts = expression.n_parts();
        if text.is_too_long() {
            return Err(text.wrong(&parsed, "all expressions together are too long".to_owned()));
        }
        self.n_parts += expression.n_parts();
        Ok((self.keeping(expression), kind))
    }

    /// The same, in which the answers of parts that depend on one table alone are kept.
    fn keeping(&mut self, expression: Formula) -> Formula {
        match table_of(&expression) {
            Depends::On(table) if !matches!(expression, Formula::Field(_)) => {
                self.n_kept += 1;
                Formula::Kept(table, self.n_kept - 1, Box::new(expression))
            }
            _ => match expression {
                Formula::And(both) => {
                    Formula::And(Box::new((self.keeping(both.0), self.keeping(both.1))))
                }
                Formula::Or(both) => {
                    Formula::Or(Box::new((self.keeping(both.0), self.keeping(both.1))))
                }
                Formula::Not(inner) => Formula::Not(Box::new(self.keeping(*inner))),
                other => other,
            },
        }
    }
}

/// The tables that an expression depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depends {
    OnNothing,
    On(Column),
    OnMore,
}

fn table_of(expression: &Formula) -> Depends {
    match expression {
        Formula::Constant(_) => Depends::OnNothing,
        Formula::Field(field) => field.table().map_or(Depends::OnMore, Depends::On),
        // One that has a name of its own: its answers are kept already.
        Formula::Kept(..) => Depends::OnMore,
        other => other.parts().into_iter().fold(Depends::OnNothing, |sum, part| {
            match (sum, table_of(part)) {
                (sum, Depends::OnNothing) => sum,
                (Depends::OnNothing, part) => part,
                (Depends::On(one), Depends::On(other)) if one == other => sum,
                _ => Depends::OnMore,
            }
        }),
    }
}

impl SourceText<'_> {
    /// Tells whether the question has too many parts with this one.
    const fn is_too_long(&self) -> bool {
        self.compiler.n_parts + self.n_parts > limit::MAX_EXPRESSION_PARTS
    }

    fn wrong(&self, expr: &IdedExpr, message: String) -> QueryError {
        let start = self.info.offset_for(expr.id).map_or(0, |(start, _)| start as usize);
        let column = 1 + start.min(self.source.chars().count());
        let message = message.replace(STAND_IN, RESERVED);
        QueryError::Expression { expression: self.source.to_owned(), column, message }
    }

    fn of(&mut self, expr: &IdedExpr, depth: u16) -> Result<(Formula, ValueType), QueryError> {
        if depth > MAX_DEPTH {
            return Err(self.wrong(expr, "nested too deeply".to_owned()));
        }
        match &expr.expr {
            Expr::Literal(literal) => self.literal(expr, literal),
            Expr::Ident(name) if name == STAND_IN => {
                Ok((Formula::Field(Field::Function), Field::Function.kind()))
            }
            Expr::Ident(name) => {
                let Some(named) = self.compiler.named(name) else {
                    let names = self.compiler.names();
                    return Err(self.wrong(expr, format!("no field {name}; there are {names}")));
                };
                let deepest = usize::from(depth) + named.0.depth();
                self.n_parts += named.0.n_parts();
                if deepest > limit::MAX_EXPRESSION_DEPTH || self.is_too_long() {
                    return Err(self.wrong(expr, "expressions of expressions get too long".into()));
                }
                Ok(named)
            }
            Expr::Call(call) => self.call(expr, call, depth),
            _ => {
                let message = "only fields, numbers, texts, true, false, null, lists after `in`, \
                               operators and functions can be used";
                Err(self.wrong(expr, message.to_owned()))
            }
        }
    }

    fn literal(
        &self,
        expr: &IdedExpr,
        literal: &LiteralValue,
    ) -> Result<(Formula, ValueType), QueryError> {
        let (value, kind) = match literal {
            LiteralValue::Boolean(is_so) => (Value::Bool(*is_so.inner()), ValueType::Bool),
            LiteralValue::Int(number) => (Value::Number(*number.inner()), ValueType::Number),
            // Addresses of the kernel are negative.
            LiteralValue::UInt(number) => {
                (Value::Number(*number.inner() as i64), ValueType::Number)
            }
            LiteralValue::String(text) => {
                (Value::Text(text.inner().to_owned().into()), ValueType::Text)
            }
            LiteralValue::Null => (Value::None, ValueType::None),
            LiteralValue::Double(_) | LiteralValue::Bytes(_) => {
                let message = "numbers are whole, and texts are in quotes";
                return Err(self.wrong(expr, message.to_owned()));
            }
        };
        Ok((Formula::Constant(value), kind))
    }

    fn call(
        &mut self,
        expr: &IdedExpr,
        call: &CallExpr,
        depth: u16,
    ) -> Result<(Formula, ValueType), QueryError> {
        let parts: Vec<&IdedExpr> =
            call.target.iter().map(|target| &**target).chain(&call.args).collect();
        let name = call.func_name.as_str();
        if name == operators::IN
            && let [value, list] = parts[..]
        {
            return self.is_in(value, list, depth);
        }
        let mut made = Vec::new();
        for part in &parts {
            made.push(self.of(part, depth + 1)?);
        }
        let kinds: Vec<ValueType> = made.iter().map(|(_, kind)| *kind).collect();
        let mut made = made.into_iter().map(|(expression, _)| expression);
        let mut next = || made.next().unwrap_or(Formula::Constant(Value::None));
        let made = match (name, &kinds[..]) {
            (operators::LOGICAL_AND, [ValueType::Bool, ValueType::Bool]) => {
                (Formula::And(Box::new((next(), next()))), ValueType::Bool)
            }
            (operators::LOGICAL_OR, [ValueType::Bool, ValueType::Bool]) => {
                (Formula::Or(Box::new((next(), next()))), ValueType::Bool)
            }
            (operators::LOGICAL_NOT, [ValueType::Bool]) => {
                (Formula::Not(Box::new(next())), ValueType::Bool)
            }
            (operators::NEGATE, [ValueType::Number]) => {
                (Formula::Negate(Box::new(next())), ValueType::Number)
            }
            (operators::CONDITIONAL, [ValueType::Bool, one, other]) if one == other => {
                (Formula::Conditional(Box::new((next(), next(), next()))), *one)
            }
            ("size", [ValueType::Text]) => (Formula::Length(Box::new(next())), ValueType::Number),
            (_, [one, other]) => match of_two(name, *one, *other) {
                Some((make, kind)) => (make(next(), next()), kind),
                None => return Err(self.misfit(expr, name, &kinds)),
            },
            _ => return Err(self.misfit(expr, name, &kinds)),
        };
        Ok(made)
    }

    fn misfit(&self, expr: &IdedExpr, name: &str, kinds: &[ValueType]) -> QueryError {
        let operator = name.trim_matches(['_', '@']);
        let kinds: Vec<&str> = kinds.iter().map(|kind| kind.text()).collect();
        let functions = "functions are startsWith, endsWith, contains, size";
        let message = match kinds.is_empty() {
            true => format!("no function {operator}; {functions}"),
            false => format!("{operator} does not go with {}; {functions}", kinds.join(" and ")),
        };
        self.wrong(expr, message)
    }

    fn is_in(
        &mut self,
        value: &IdedExpr,
        list: &IdedExpr,
        depth: u16,
    ) -> Result<(Formula, ValueType), QueryError> {
        let Expr::List(elements) = &list.expr else {
            return Err(self.wrong(list, "expected a list: [1, 2] or [\"a\", \"b\"]".to_owned()));
        };
        let (value, kind) = self.of(value, depth + 1)?;
        let mut made = Vec::new();
        for element in &elements.elements {
            let (expression, of_element) = self.of(element, depth + 1)?;
            if of_element != kind {
                let message = format!("{} where {} is looked for", of_element.text(), kind.text());
                return Err(self.wrong(element, message));
            }
            made.push(expression);
        }
        Ok((Formula::In(Box::new(value), made), ValueType::Bool))
    }
}

/// The name of a field that the language keeps for itself.
const RESERVED: &str = "function";

/// A word as long that stands for it, so that columns stay.
const STAND_IN: &str = "functi0n";

/// The text with [`STAND_IN`] wherever [`RESERVED`] is a word of its own, but for what is in quotes.
fn without_reserved(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut readable, mut rest) = (String::new(), text);
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        let word_len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (taken, left) = match quote {
            None if word_len > 0 => rest.split_at(word_len),
            Some(_) if c == '\\' => {
                rest.split_at(rest.char_indices().nth(2).map_or(rest.len(), |(at, _)| at))
            }
            _ => rest.split_at(c.len_utf8()),
        };
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            _ => {}
        }
        readable.push_str(if quote.is_none() && taken == RESERVED { STAND_IN } else { taken });
        rest = left;
    }
    readable
}

type MakeOfTwo = Box<dyn FnOnce(Formula, Formula) -> Formula>;

/// The way to make an expression of two whose kinds are known, and its kind; `None` where they do not fit.
fn of_two(name: &str, one: ValueType, other: ValueType) -> Option<(MakeOfTwo, ValueType)> {
    let related = |relation: Comparison| -> Option<(MakeOfTwo, ValueType)> {
        let make = move |left, right| match one {
            ValueType::Number => Formula::CompareNumbers(relation, Box::new((left, right))),
            _ => Formula::Compare(relation, Box::new((left, right))),
        };
        Some((Box::new(make), ValueType::Bool))
    };
    let computed = |operator: Operator| -> Option<(MakeOfTwo, ValueType)> {
        let make = move |left, right| Formula::Number(operator, Box::new((left, right)));
        (one == ValueType::Number).then(|| (Box::new(make) as MakeOfTwo, ValueType::Number))
    };
    let test = |test: TextTest| -> Option<(MakeOfTwo, ValueType)> {
        let make = move |text, part| Formula::Test(test, Box::new((text, part)));
        Some((Box::new(make), ValueType::Bool))
    };
    let is_equality = matches!(name, operators::EQUALS | operators::NOT_EQUALS);
    if is_equality && (one == ValueType::None || other == ValueType::None) {
        let is_not = name == operators::NOT_EQUALS;
        let make = move |left, right| {
            let asked = if one == ValueType::None { right } else { left };
            let is_none = Formula::IsNone(Box::new(asked));
            if is_not { Formula::Not(Box::new(is_none)) } else { is_none }
        };
        return Some((Box::new(make), ValueType::Bool));
    }
    if one != other || one == ValueType::None {
        return None;
    }
    match name {
        operators::EQUALS => related(Comparison::Equal),
        operators::NOT_EQUALS => related(Comparison::NotEqual),
        operators::LESS => related(Comparison::Less),
        operators::LESS_EQUALS => related(Comparison::LessOrEqual),
        operators::GREATER => related(Comparison::Greater),
        operators::GREATER_EQUALS => related(Comparison::GreaterOrEqual),
        operators::ADD if one == ValueType::Text => {
            let make = |left, right| Formula::Join(Box::new((left, right)));
            Some((Box::new(make), ValueType::Text))
        }
        operators::ADD => computed(Operator::Add),
        operators::SUBSTRACT => computed(Operator::Subtract),
        operators::MULTIPLY => computed(Operator::Multiply),
        operators::DIVIDE => computed(Operator::Divide),
        operators::MODULO => computed(Operator::Remainder),
        "startsWith" if one == ValueType::Text => test(TextTest::StartsWith),
        "endsWith" if one == ValueType::Text => test(TextTest::EndsWith),
        "contains" if one == ValueType::Text => test(TextTest::Contains),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(text: &str) -> Result<ValueType, (usize, String)> {
        let mut compiler = Compiler::default();
        compiler.expression(text).map(|(_, kind)| kind).map_err(|error| match error {
            QueryError::Expression { column, message, .. } => (column, message),
            other => panic!("{other}"),
        })
    }

    #[test]
    fn kinds_fit_or_the_column_is_told() {
        for (text, kind) in [
            ("function == \"main\" && access == 'store'", ValueType::Bool),
            ("addr / 2097152", ValueType::Number),
            ("offset % 64", ValueType::Number),
            ("-cpu + 0x10 * (2 - thread)", ValueType::Number),
            ("object.startsWith('{') ? function : module", ValueType::Text),
            ("comm in [\"a\", \"b\"] || cpu in [1, 2]", ValueType::Bool),
            ("reason != null && !memory", ValueType::Bool),
            ("size(object) > 3 || object.size() > 3", ValueType::Bool),
            ("\"a function\" + function", ValueType::Text),
        ] {
            assert_eq!(compiled(text), Ok(kind), "{text}");
        }
        for (text, column, word) in [
            ("cpu == 1 && cbu == 2", 13, "no field cbu"),
            ("cpu == \"x\"", 5, "a number and a text"),
            ("cpu && 1", 5, "does not go"),
            ("cpu = 1", 5, ""),
            ("cpu == ", 7, ""),
            ("object.matches(\"a\")", 15, "functions are"),
            ("[1, 2]", 1, "only fields"),
            ("cpu == 1.5", 8, "whole"),
            ("cpu in [1, \"a\"]", 12, "a text where a number"),
            ("has(object.x)", 4, ""),
            ("", 1, ""),
        ] {
            let (found, message) = compiled(text).unwrap_err();
            assert!(message.contains(word), "{text}: {message}");
            assert!(found.abs_diff(column) <= 1, "{text}: column {found}, not {column}: {message}");
        }
        let deep = "(".repeat(2000) + "1" + &")".repeat(2000);
        assert!(compiled(&deep).is_err());
        let long = "1 +".repeat(2000) + "1";
        assert!(compiled(&long).unwrap_err().1.contains("longer than"));
    }

    #[test]
    fn keys_of_ones_own_use_each_other_but_not_in_a_circle() {
        let keys = |keys: &[(&str, &str)]| {
            let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
            Compiler::new(&keys.iter().map(own).collect())
        };
        let compiler = keys(&[("a_huge", "page2 / 512"), ("page2", "addr / 4096")]).unwrap();
        assert_eq!(compiler.named("a_huge").map(|(_, kind)| kind), Some(ValueType::Number));
        assert!(keys(&[("a", "b"), ("b", "a")]).is_err());
        let doubled = (0..20).map(|n| (format!("k{:02}", n + 1), format!("k{n:02} + k{n:02}")));
        let doubled = doubled.chain([("k00".to_owned(), "cpu".to_owned())]);
        let error = Compiler::new(&doubled.collect()).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
        let nested = (0..31).map(|n| (format!("k{:02}", n + 1), format!("-(-k{n:02})")));
        let nested = nested.chain([("k00".to_owned(), "cpu".to_owned())]);
        assert!(Compiler::new(&nested.collect()).is_err(), "too deep");
        let many = (0..33).map(|n| (format!("k{n}"), "cpu".to_owned())).collect();
        assert_eq!(Compiler::new(&many).unwrap_err(), QueryError::OwnKeys { max: 32 });
        let taken = keys(&[("page", "addr / 4096")]).unwrap_err();
        assert_eq!(taken, QueryError::Taken("page".to_owned()));
    }

    #[test]
    fn a_reserved_word_is_read_as_a_field_but_not_in_a_text() {
        let check = |text: &str, readable: &str| assert_eq!(without_reserved(text), readable);
        check("function == 'function'", "functi0n == 'function'");
        check("a_function+functions+function", "a_function+functions+functi0n");
        check(r#""\"function" + function"#, r#""\"function" + functi0n"#);
    }
}
