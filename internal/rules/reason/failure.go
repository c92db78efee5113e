package reason

import "strings"

// OfFailure returns the reason for which the API server has not carried out a write, by its message. Messages of admission begin alike for
// each kind: `pods "web-0" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`.
func OfFailure(message string) Code {
	has := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(message, part) {
				return true
			}
		}
		return false
	}
	switch {
	case has("exceeded quota", "failed quota"):
		return QuotaExceeded
	case has("failed calling webhook", "failed to call webhook"):
		return WebhookDown
	case has("denied the request", "denied request", "violates PodSecurity"):
		return AdmissionRefused
	case strings.HasPrefix(message, "InPlaceOnly"): // by which the controllers of workloads begin to say so
		return InPlaceRefused
	}
	return WriteFailed
}
