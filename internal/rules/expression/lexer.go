package expression

import (
	"fmt"
	"math/big"
	"strings"
)

// longest is the most characters of an expression, so that reading one takes next to no time and no depth of calls.
const longest = 1024

// maxExponent bounds the size of numbers that are written with an exponent.
const maxExponent = 18

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

// unit returns the factor of a unit's symbol.
func unit(symbol string) (*big.Rat, bool) {
	switch symbol {
	case "m":
		return big.NewRat(1, 1000), true
	case "k", "M", "G", "T", "P":
		power := int64(strings.Index("kMGTP", symbol) + 1)
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(1000), big.NewInt(power), nil)), true
	case "Ki", "Mi", "Gi", "Ti", "Pi":
		power := uint(strings.Index("KMGTP", symbol[:1]) + 1)
		return new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), 10*power)), true
	}
	return nil, false
}

// split cuts an expression into tokens, the last of which is an end.
func split(text string) ([]token, error) {
	if len(text) > longest {
		return nil, fmt.Errorf("it has %d characters; %d are allowed", len(text), longest)
	}
	var tokens []token
	for at := 0; at < len(text); {
		c := text[at]
		var next token
		length := 1
		var err error
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
			continue
		case strings.ContainsRune("+-*/(),", rune(c)):
			next = token{kind: symbol, text: text[at : at+1]}
		case isDigit(c) || c == '.':
			next, length, err = splitNumber(text[at:])
		case isLetter(c):
			for at+length < len(text) && (isLetter(text[at+length]) || isDigit(text[at+length])) {
				length++
			}
			next = token{kind: word, text: text[at : at+length]}
		default:
			err = fmt.Errorf("%q means nothing here", c)
		}
		if err != nil {
			return nil, fmt.Errorf("at character %d: %w", at+1, err)
		}
		next.at = at
		tokens = append(tokens, next)
		at += length
	}
	return append(tokens, token{kind: end, at: len(text)}), nil
}

// splitNumber reads the number or quantity that the text begins with, and returns the length of it.
func splitNumber(text string) (token, int, error) {
	length := 0
	take := func(allowed func(byte) bool) string {
		from := length
		for length < len(text) && allowed(text[length]) {
			length++
		}
		return text[from:length]
	}
	digits := take(func(c byte) bool { return isDigit(c) || c == '.' })
	if strings.Count(digits, ".") > 1 || digits == "." {
		return token{}, 0, fmt.Errorf("%q is not a number", digits)
	}
	exponent, err := splitExponent(text[length:])
	if err != nil {
		return token{}, 0, err
	}
	length += len(exponent)
	value, ok := new(big.Rat).SetString(digits + exponent)
	if !ok {
		return token{}, 0, fmt.Errorf("%q is not a number", digits+exponent)
	}
	if length < len(text) && text[length] == '%' {
		return token{kind: number, text: text[:length+1], value: value.Quo(value, big.NewRat(100, 1))}, length + 1, nil
	}
	suffix := take(isLetter)
	if suffix == "" {
		return token{kind: number, text: text[:length], value: value}, length, nil
	}
	factor, known := unit(suffix)
	if !known || exponent != "" {
		return token{}, 0, fmt.Errorf("%q is not a quantity: the units are m, k, M, G, T, P, Ki, Mi, Gi, Ti and Pi", text[:length])
	}
	return token{kind: quantity, text: text[:length], value: value.Mul(value, factor)}, length, nil
}

// splitExponent returns the exponent that the text begins with, such as e-3; nothing when there is none.
func splitExponent(text string) (string, error) {
	if text == "" || text[0] != 'e' && text[0] != 'E' {
		return "", nil
	}
	length := 1
	if length < len(text) && (text[length] == '+' || text[length] == '-') {
		length++
	}
	from := length
	power := 0
	for length < len(text) && isDigit(text[length]) {
		power = min(10*power+int(text[length]-'0'), maxExponent+1)
		length++
	}
	switch {
	case length == from:
		return "", nil // a unit, which is not known
	case power > maxExponent:
		return "", fmt.Errorf("the exponent of %q is out of range: up to %d are allowed", text[:length], maxExponent)
	}
	return text[:length], nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
