package expression

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Variable is what an expression may speak of.
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
		return node{}, fmt.Errorf("at character %d: %q is not known: there are %s, max and min", p.tokens[0].at+1, p.tokens[0].text, p.variable)
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
