package certs

import (
	"bytes"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// entry is one webhook of a configuration: of either kind it has a name, and says where its server is.
type entry[T any] struct {
	name   func(*T) string
	client func(*T) *admissionv1.WebhookClientConfig
}

func mutatingEntry() entry[admissionv1.MutatingWebhook] {
	return entry[admissionv1.MutatingWebhook]{
		name:   func(w *admissionv1.MutatingWebhook) string { return w.Name },
		client: func(w *admissionv1.MutatingWebhook) *admissionv1.WebhookClientConfig { return &w.ClientConfig },
	}
}

func validatingEntry() entry[admissionv1.ValidatingWebhook] {
	return entry[admissionv1.ValidatingWebhook]{
		name:   func(w *admissionv1.ValidatingWebhook) string { return w.Name },
		client: func(w *admissionv1.ValidatingWebhook) *admissionv1.WebhookClientConfig { return &w.ClientConfig },
	}
}

// arranged is the outcome for one configuration: its webhooks as they are to be, and for those of ours the CAs that each trusts.
type arranged[T any] struct {
	webhooks []T
	bundles  [][]byte
	changed  bool
}

// arrange returns the webhooks that a configuration is to hold: the served ones of shipped, as users may have tuned them, with address and
// CAs filled in. A webhook that leads to the managers but whose path none serves is left out, because it could only refuse what it is asked:
// it is left over from another version. Webhooks that lead elsewhere are somebody else's and stay.
func arrange[T any](live, shipped []T, e entry[T], w wiring) arranged[T] {
	var out arranged[T]
	wanted := map[string]bool{}
	for i := range shipped {
		if w.serves(addressOf(e.client(&shipped[i])).path()) {
			wanted[e.name(&shipped[i])] = true
		}
	}
	found := map[string]bool{}
	add := func(webhook T) {
		config := e.client(&webhook)
		where := w.endpoint.at(addressOf(config).path())
		config.URL, config.Service = where.url, where.service
		config.CABundle = w.caBundle(config.CABundle)
		out.webhooks = append(out.webhooks, webhook)
		out.bundles = append(out.bundles, config.CABundle)
	}
	for _, webhook := range live {
		where := addressOf(e.client(&webhook))
		switch ours := w.endpoint.owns(where) || wanted[e.name(&webhook)]; {
		case !ours:
			out.webhooks = append(out.webhooks, webhook)
		case w.serves(where.path()):
			found[e.name(&webhook)] = true
			add(webhook)
		}
	}
	for _, webhook := range shipped {
		if name := e.name(&webhook); wanted[name] && !found[name] {
			add(webhook)
		}
	}
	out.changed = !equality.Semantic.DeepEqual(live, out.webhooks)
	return out
}

func addressOf(c *admissionv1.WebhookClientConfig) address {
	return address{url: c.URL, service: c.Service}
}

// wiring is what is filled into webhooks and CRDs.
type wiring struct {
	endpoint Endpoint
	// serves reports whether the managers answer on a path.
	serves func(path string) bool
	// bundle is what has to be trusted; keep returns what of that which is trusted already stays so.
	bundle []byte
	keep   func(live []byte) []byte
}

// caBundle returns the CAs that are to be in the place of live. CAs that are there already are not written again in another form.
func (w wiring) caBundle(live []byte) []byte {
	wanted := join(w.bundle, w.keep(live))
	if bytes.Equal(join(live), wanted) {
		return live
	}
	return wanted
}
