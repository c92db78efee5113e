package certs

import (
	"fmt"
	"strconv"
	"time"
)

const day = 24 * time.Hour

// DefaultRenewBefore is how long before its end a CA is replaced.
const DefaultRenewBefore = 30 * day

// ParseRenewBefore reads the value of CERTS_RENEW_BEFORE: a whole number and one of d (days), m (months of 30 days) and y (years of 365
// days), such as 45d. Empty is DefaultRenewBefore. More than half of the life of a CA is taken as half of it.
func ParseRenewBefore(value string) (time.Duration, error) {
	if value == "" {
		return DefaultRenewBefore, nil
	}
	last := len(value) - 1
	unit, known := map[byte]time.Duration{'d': day, 'm': 30 * day, 'y': 365 * day}[value[last]]
	number, err := strconv.ParseUint(value[:last], 10, 16)
	if err != nil || !known || number == 0 {
		return 0, fmt.Errorf("%q is not a time before the end of a certificate, write days, months or years as 45d, 6m or 1y", value)
	}
	return min(time.Duration(number)*unit, caLife/2), nil
}
