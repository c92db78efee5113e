package process

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
)

// defaultWorkers is the number of objects of a kind that are reconciled at the same time if a flag says nothing else.
const defaultWorkers = 3

// Workers is the number of objects of a kind that are reconciled at the same time, as a flag.
type Workers struct {
	Number *int
	Flag   string
	// What is reconciled, in plural, such as CloneSets.
	What string
}

// BindWorkers declares flags of numbers of workers.
func BindWorkers(fs *flag.FlagSet, all []Workers) {
	for _, w := range all {
		fs.IntVar(w.Number, w.Flag, defaultWorkers, "how many "+w.What+" are reconciled at the same time")
	}
}

// ValidateWorkers returns an error if there are to be none of some.
func ValidateWorkers(all []Workers) error {
	for _, w := range all {
		if *w.Number < 1 {
			return fmt.Errorf("--%s is %d, want 1 at least", w.Flag, *w.Number)
		}
	}
	return nil
}

// BindIgnored declares flags that are accepted and ignored, with the defaults that the original shows for them, so that the command line of
// an existing installation keeps working.
func BindIgnored(fs *flag.FlagSet, defaults map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		fs.String(name, defaults[name], "accepted and ignored")
	}
}

// FromEnvironment returns the options with all that the environment says otherwise.
func (o WebhookOptions) FromEnvironment() WebhookOptions {
	for name, field := range map[string]*string{
		"WEBHOOK_HOST": &o.Host, "WEBHOOK_PORT": &o.Port, "WEBHOOK_CERT_DIR": &o.CertDir, "POD_NAMESPACE": &o.PodNamespace,
		"SECRET_NAME": &o.SecretName, "SERVICE_NAME": &o.ServiceName, "CERTS_RENEW_BEFORE": &o.RenewBefore,
	} {
		if value := os.Getenv(name); value != "" {
			*field = value
		}
	}
	return o
}

// Validate returns an error for a port that there is not.
func (o WebhookOptions) Validate() error {
	if _, err := o.port(); err != nil {
		return fmt.Errorf("WEBHOOK_PORT is %q, want the number of a port: %w", o.Port, err)
	}
	return nil
}
