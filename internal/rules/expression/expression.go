// Package expression computes the resources of a sidecar from those of a Pod's own containers, such as max(cpu*50%, 50m).
//
// A value is a quantity, of cores or bytes, or a plain number. There are numbers (42, .5, 1e3, 50%), quantities (100m, 1.5Gi), the variable
// cpu or memory, + - * / and parentheses, max(a, b) and min(a, b). A quantity can be multiplied with a number and divided by one; two
// quantities can be neither. A number that is added to a quantity or compared with one counts cores or bytes, and so does one that is the
// result.
//
// Whatever is wrong with an expression shows when it is read: only that its result is negative depends on the variable.
package expression

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxLength is the most characters of an expression, so that reading one takes next to no time and no depth of calls.
	maxLength = 1024
	// maxExponent bounds the size of numbers that are written with an exponent.
	maxExponent = 18
)

// Variable is the resource that an expression refers to.
type Variable string

const (
	// CPU is a number of cores.
	CPU Variable = "cpu"
	// Memory is a number of bytes.
	Memory Variable = "memory"
)

// Expression is one that has been read.
type Expression struct {
	root node
	text string
	// uses means that the variable occurs.
	uses bool
}

// node is a part of an expression.
type node struct {
	// isQuantity says what kind of value it has.
	isQuantity bool
	// eval returns its value, in cores or bytes if it is a quantity.
	eval func(variable *big.Rat) *big.Rat
}

// Compile reads an expression over a variable.
func Compile(text string, variable Variable) (*Expression, error) {
	tokens, err := split(text)
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", text, err)
	}
	p := &parser{tokens: tokens, variable: variable}
	root, err := p.sum()
	if err == nil && p.tokens[0].kind != end {
		err = p.unexpected()
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", text, err)
	}
	return &Expression{root: root, text: text, uses: p.uses}, nil
}

// Uses reports whether the result depends on the variable at all.
func (e *Expression) Uses() bool { return e.uses }

// At returns the result, in thousandths of a core or of a byte, for a value of the variable in the same unit.
func (e *Expression) At(milli int64) (int64, error) {
	result := milliOf(e.root.eval(big.NewRat(milli, 1000)))
	switch {
	case result.Sign() < 0:
		return 0, fmt.Errorf("%q is negative: it is %s thousandths for a value of %d thousandths", e.text, result, milli)
	case !result.IsInt64():
		return 0, fmt.Errorf("%q is too large", e.text)
	}
	return result.Int64(), nil
}

// Check reads an expression, and reports one that has no use for any size of container: it is negative up to 1024 cores or 4Ti.
func Check(text string, variable Variable) error {
	e, err := Compile(text, variable)
	if err != nil {
		return err
	}
	most := int64(1024 * 1000)
	if variable == Memory {
		most = (4 << 40) * 1000
	}
	for milli := int64(0); ; milli = max(2*milli, 1) {
		if _, err = e.At(min(milli, most)); err == nil || milli >= most {
			return err
		}
	}
}

// milliOf returns whole thousandths, what is less being cut off.
func milliOf(value *big.Rat) *big.Int {
	thousandfold := new(big.Int).Mul(value.Num(), big.NewInt(1000))
	return thousandfold.Quo(thousandfold, value.Denom())
}

// cut cuts a quantity off to whole thousandths.
func cut(value *big.Rat) *big.Rat {
	return new(big.Rat).SetFrac(milliOf(value), big.NewInt(1000))
}

type tokenKind int

const (
	end tokenKind = iota
	number
	quantity
	word
	symbol
)

type token struct {
	kind  tokenKind
	text  string
	value *big.Rat
	at    int
}

// tokenPattern matches white space and then a number with an exponent and a unit, a word, a symbol, or any other character.
var tokenPattern = regexp.MustCompile(`[ \t\r\n]*` +
	`(?:([0-9.]+)([eE][+-]?[0-9]+)?(%|[A-Za-z_]*)|([A-Za-z_][A-Za-z_0-9]*)|([-+*/(),])|([^ \t\r\n]))`)

// split returns the tokens of an expression, the last of which is an end.
func split(text string) ([]token, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("it has %d characters; %d are allowed", len(text), maxLength)
	}
	var out []token
	for _, match := range tokenPattern.FindAllStringSubmatchIndex(text, -1) {
		group := func(n int) string {
			if match[2*n] < 0 {
				return ""
			}
			return text[match[2*n]:match[2*n+1]]
		}
		var next token
		var err error
		switch {
		case group(1) != "":
			next, err = readNumber(group(1), group(2), group(3))
			next.at = match[2]
		case group(4) != "":
			next = token{kind: word, text: group(4), at: match[8]}
		case group(5) != "":
			next = token{kind: symbol, text: group(5), at: match[10]}
		default:
			next.at = match[12]
			err = fmt.Errorf("%q means nothing here", text[next.at])
		}
		if err != nil {
			return nil, fmt.Errorf("at character %d: %w", next.at+1, err)
		}
		out = append(out, next)
	}
	return append(out, token{kind: end, at: len(text)}), nil
}

// readNumber returns the token of a number or a quantity, from its digits, its exponent and its unit.
func readNumber(digits, exponent, unit string) (token, error) {
	if power, err := strconv.Atoi(strings.TrimLeft(exponent, "eE+-")); exponent != "" && (err != nil || power > maxExponent) {
		return token{}, fmt.Errorf("the exponent of %q is out of range: up to %d are allowed", exponent, maxExponent)
	}
	value, ok := new(big.Rat).SetString(digits + exponent)
	if !ok {
		return token{}, fmt.Errorf("%q is not a number", digits+exponent)
	}
	text := digits + exponent + unit
	switch factor := factorOf(unit); {
	case unit == "":
		return token{kind: number, text: text, value: value}, nil
	case unit == "%":
		return token{kind: number, text: text, value: value.Quo(value, big.NewRat(100, 1))}, nil
	case factor == nil || exponent != "":
		return token{}, fmt.Errorf("%q is not a quantity: the units are m, k, M, G, T, P, Ki, Mi, Gi, Ti and Pi", text)
	default:
		return token{kind: quantity, text: text, value: value.Mul(value, factor)}, nil
	}
}

// factorOf returns the factor of a unit; nil if there is no such unit.
func factorOf(unit string) *big.Rat {
	switch unit {
	case "m":
		return big.NewRat(1, 1000)
	case "k", "M", "G", "T", "P":
		power := int64(strings.Index("kMGTP", unit) + 1)
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(1000), big.NewInt(power), nil))
	case "Ki", "Mi", "Gi", "Ti", "Pi":
		power := uint(strings.Index("KMGTP", unit[:1]) + 1)
		return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 10*power))
	}
	return nil
}

// parser goes through the tokens; a sum is of products, a product of factors, and a factor is one value.
type parser struct {
	tokens   []token
	variable Variable
	uses     bool
}

func (p *parser) unexpected() error {
	if p.tokens[0].kind == end {
		return errors.New("it ends too early")
	}
	return fmt.Errorf("at character %d: %q is not expected here", p.tokens[0].at+1, p.tokens[0].text)
}

// take takes the next token if it is the symbol.
func (p *parser) take(text string) bool {
	if p.tokens[0].kind != symbol || p.tokens[0].text != text {
		return false
	}
	p.tokens = p.tokens[1:]
	return true
}

func (p *parser) sum() (node, error) {
	left, err := p.product()
	for err == nil {
		var combine func(a, b *big.Rat) *big.Rat
		switch {
		case p.take("+"):
			combine = func(a, b *big.Rat) *big.Rat { return new(big.Rat).Add(a, b) }
		case p.take("-"):
			combine = func(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
		default:
			return left, nil
		}
		var right node
		if right, err = p.product(); err == nil {
			left = alike(left, right, combine)
		}
	}
	return node{}, err
}

// alike combines two values of which a number becomes a quantity if the other one is one.
func alike(a, b node, combine func(a, b *big.Rat) *big.Rat) node {
	out := node{isQuantity: a.isQuantity || b.isQuantity}
	value := func(n node, variable *big.Rat) *big.Rat {
		if out.isQuantity && !n.isQuantity {
			return cut(n.eval(variable))
		}
		return n.eval(variable)
	}
	out.eval = func(variable *big.Rat) *big.Rat { return combine(value(a, variable), value(b, variable)) }
	return out
}

func (p *parser) product() (node, error) {
	left, err := p.factor()
	for err == nil {
		times := p.take("*")
		if !times && !p.take("/") {
			return left, nil
		}
		var right node
		if right, err = p.factor(); err != nil {
			break
		}
		if times {
			left, err = multiply(left, right)
		} else {
			left, err = divide(left, right)
		}
	}
	return node{}, err
}

func multiply(a, b node) (node, error) {
	if a.isQuantity && b.isQuantity {
		return node{}, errors.New("two quantities can't be multiplied")
	}
	out := node{isQuantity: a.isQuantity || b.isQuantity}
	out.eval = func(variable *big.Rat) *big.Rat {
		value := new(big.Rat).Mul(a.eval(variable), b.eval(variable))
		if out.isQuantity {
			return cut(value)
		}
		return value
	}
	return out, nil
}

func divide(a, b node) (node, error) {
	if b.isQuantity {
		return node{}, errors.New("nothing can be divided by a quantity")
	}
	by := b.eval(new(big.Rat)) // a number does not depend on the variable
	if by.Sign() == 0 {
		return node{}, errors.New("nothing can be divided by zero")
	}
	return multiply(a, constant(new(big.Rat).Inv(by)))
}

func constant(value *big.Rat) node {
	return node{eval: func(*big.Rat) *big.Rat { return value }}
}

func (p *parser) factor() (node, error) {
	next := p.tokens[0]
	switch {
	case p.take("-"):
		n, err := p.factor()
		return node{isQuantity: n.isQuantity, eval: func(v *big.Rat) *big.Rat { return new(big.Rat).Neg(n.eval(v)) }}, err
	case p.take("("):
		n, err := p.sum()
		if err == nil && !p.take(")") {
			err = p.unexpected()
		}
		return n, err
	case next.kind == number:
		p.tokens = p.tokens[1:]
		return constant(next.value), nil
	case next.kind == quantity:
		p.tokens = p.tokens[1:]
		n := constant(next.value)
		n.isQuantity = true
		return n, nil
	case next.kind == word:
		return p.name()
	}
	return node{}, p.unexpected()
}

// name reads the variable or a function.
func (p *parser) name() (node, error) {
	name := strings.ToLower(p.tokens[0].text)
	switch name {
	case string(p.variable):
		p.tokens = p.tokens[1:]
		p.uses = true
		return node{isQuantity: true, eval: func(variable *big.Rat) *big.Rat { return variable }}, nil
	case "max", "min":
		p.tokens = p.tokens[1:]
	default:
		return node{}, fmt.Errorf("at character %d: %q is not known: there are %s, max and min",
			p.tokens[0].at+1, p.tokens[0].text, p.variable)
	}
	var arguments [2]node
	for i, before := range []string{"(", ","} {
		if !p.take(before) {
			return node{}, p.unexpected()
		}
		var err error
		if arguments[i], err = p.sum(); err != nil {
			return node{}, err
		}
	}
	if !p.take(")") {
		return node{}, p.unexpected()
	}
	return alike(arguments[0], arguments[1], func(a, b *big.Rat) *big.Rat {
		if (a.Cmp(b) > 0) == (name == "max") {
			return a
		}
		return b
	}), nil
}
