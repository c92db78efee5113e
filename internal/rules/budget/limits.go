package budget

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Unlimited stands for a limit that was not set.
const Unlimited = math.MaxInt32

// defaultMaxUnavailable applies where maxUnavailable is not set, and always to updates on deletion, which have no such field.
const defaultMaxUnavailable = "20%"

// Strategy is the part of a workload's spec that limits scaling and updating.
type Strategy struct {
	Partition      *intstr.IntOrString
	MaxUnavailable *intstr.IntOrString
	MaxSurge       *intstr.IntOrString
	// ScaleMaxUnavailable limits unavailable Pods while Pods are added; nil for no limit.
	ScaleMaxUnavailable *intstr.IntOrString
	// Paused turns surge off: nothing is being updated that it could serve.
	Paused bool
	// OnDelete leaves updates to the user: there is no partition and no surge.
	OnDelete bool
}

// Limits are the numbers behind a Strategy at a number of replicas.
type Limits struct {
	Replicas       int
	Partition      int
	MaxUnavailable int
	MaxSurge       int
	// ScaleMaxUnavailable is Unlimited where the strategy does not say.
	ScaleMaxUnavailable int
}

// Expected returns the number of Pods that the update revision is wanted on.
func (l Limits) Expected() int { return l.Replicas - l.Partition }

// Words says a number, and of which percentage it was made, if of one: 2, or 2 (20%).
func Words(number int, of *intstr.IntOrString) string {
	if of == nil || of.Type != intstr.String {
		return strconv.Itoa(number)
	}
	return fmt.Sprintf("%d (%s)", number, of.StrVal)
}

// Resolve turns a strategy into numbers. It fails on a value that is neither a number nor a percentage, or is negative; the error names the
// field and the value.
//
// Partition, maxSurge and the scale limit round percentages up; maxUnavailable rounds up without surge and down with it, so that at least
// one of the two lets a rollout move: 20% of 4 is 1 without surge, and 0 with it.
func Resolve(s Strategy, replicas int32) (Limits, error) {
	l := Limits{Replicas: int(replicas), ScaleMaxUnavailable: Unlimited}
	var err error
	if s.ScaleMaxUnavailable != nil {
		if l.ScaleMaxUnavailable, err = scaled("scaleStrategy.maxUnavailable", s.ScaleMaxUnavailable, l.Replicas, Up); err != nil {
			return Limits{}, err
		}
	}
	if s.OnDelete {
		whole := intstr.FromString(defaultMaxUnavailable)
		n, err := Scaled(&whole, l.Replicas, Down)
		// The smallest workload must be able to let a Pod go that its user specified.
		l.MaxUnavailable = max(n, 1)
		return l, err
	}
	if l.Partition, err = Partition(s.Partition, l.Replicas); err != nil {
		return Limits{}, err
	}
	surge, err := scaled("maxSurge", s.MaxSurge, l.Replicas, Up)
	if err != nil {
		return Limits{}, err
	}
	if !s.Paused {
		l.MaxSurge = surge
	}
	round := Up
	if l.MaxSurge > 0 {
		round = Down
	}
	unavailable := s.MaxUnavailable
	if unavailable == nil {
		value := intstr.FromString(defaultMaxUnavailable)
		unavailable = &value
	}
	l.MaxUnavailable, err = scaled("maxUnavailable", unavailable, l.Replicas, round)
	return l, err
}

// Partition returns how many Pods stay at older revisions: never more than replicas. A percentage rounds up, but, if it is below 100%,
// leaves at least one of several Pods to update: 95% of 10 is 9 where rounding alone gives 10. What counts is the number, not how it is
// spelled: 100.0% and 0100%, which older installations stored, keep all Pods.
func Partition(value *intstr.IntOrString, replicas int) (int, error) {
	n, err := scaled("partition", value, replicas, Up)
	if err != nil {
		return 0, err
	}
	if value != nil && value.Type == intstr.String && replicas > 1 && n >= replicas {
		if percent, err := Scaled(value, 100, Down); err != nil || percent < 100 {
			return replicas - 1, err
		}
	}
	return min(n, replicas), nil
}

// Rounding is the direction in which a fraction of a Pod becomes a whole one.
type Rounding int

const (
	// Up rounds to the next whole Pod.
	Up Rounding = iota
	// Down drops the fraction.
	Down
)

func scaled(field string, value *intstr.IntOrString, total int, r Rounding) (int, error) {
	n, err := Scaled(value, total, r)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", field, err)
	}
	return n, nil
}

// Scaled resolves a number or a percentage, which may have a fraction ("12.5%"), of total. Nil is 0. The error says what was read and what
// is wanted instead.
func Scaled(value *intstr.IntOrString, total int, r Rounding) (int, error) {
	if value == nil {
		return 0, nil
	}
	if value.Type == intstr.Int {
		if value.IntVal < 0 {
			return 0, fmt.Errorf("%d is negative: use 0 or more", value.IntVal)
		}
		return value.IntValue(), nil
	}
	digits, isPercent := strings.CutSuffix(value.StrVal, "%")
	if !isPercent || !isDecimal(digits) {
		return 0, fmt.Errorf("%q is neither a number nor a percentage such as \"20%%\"", value.StrVal)
	}
	share, ok := new(big.Rat).SetString(digits)
	if !ok {
		return 0, fmt.Errorf("%q is not a percentage such as \"20%%\"", value.StrVal)
	}
	share.Mul(share, big.NewRat(int64(total), 100))
	whole, rest := new(big.Int).QuoRem(share.Num(), share.Denom(), new(big.Int))
	if r == Up && rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() || whole.Int64() > Unlimited {
		return Unlimited, nil
	}
	return int(whole.Int64()), nil
}

// isDecimal reports whether s is digits with at most one point in between; big.Rat would take exponents and fractions as well.
func isDecimal(s string) bool {
	whole, fraction, hasPoint := strings.Cut(s, ".")
	return isDigits(whole) && (!hasPoint || isDigits(fraction))
}

func isDigits(s string) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 18
}
