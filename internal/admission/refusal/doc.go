// Package refusal writes down what webhooks refuse: in metrics, in events and in the protection log. Who reaches a webhook can say any name
// of a user or an object, so nothing here grows without bound.
package refusal
