package scene

import (
	"math/rand/v2"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// insist does something so many times until its error is none that it may be done again for, and returns that error.
func insist(times int, isInVain func(error) bool, do func() error) (err error) {
	for range times {
		if err = do(); err == nil || !isInVain(err) {
			return err
		}
		time.Sleep(30*time.Millisecond + rand.N(15*time.Millisecond))
	}
	return err
}

// edits is how often a write is tried that another one came before, or that nobody judged.
const edits = 100

func isInVain(err error) bool { return apierrors.IsConflict(err) || IsUnanswered(err) }

// Edit changes an object of the test's namespace, or of the whole cluster, which others may write to as well: it is read into into, changed
// and updated, and all of that again whenever another write came between, or a webhook did not answer. into is then what the API server
// has stored.
func Edit[T client.Object](e *Env, name string, into T, change func(T)) {
	e.Helper()
	e.Must(TryEdit(e, name, into, change))
}

// TryEdit does the same, and returns what the API server says in the end.
func TryEdit[T client.Object](e *Env, name string, into T, change func(T), options ...client.UpdateOption) error {
	return insist(edits, isInVain, func() error {
		if err := e.readAfresh(name, into); err != nil {
			return err
		}
		change(into)
		return e.Client.Update(e.Ctx, into, options...)
	})
}

// EditStatus changes the status of an object as Edit changes the rest.
func EditStatus[T client.Object](e *Env, name string, into T, change func(T)) {
	e.Helper()
	e.Must(insist(edits, isInVain, func() error {
		if err := e.readAfresh(name, into); err != nil {
			return err
		}
		change(into)
		return e.Client.Status().Update(e.Ctx, into)
	}))
}

// readAfresh reads an object into an empty one: decoding leaves what is there already where the object has nothing.
func (e *Env) readAfresh(name string, into client.Object) error {
	if _, untyped := into.(*unstructured.Unstructured); !untyped { // that says its kind itself, and decoding replaces all of it
		reflect.ValueOf(into).Elem().SetZero()
	}
	return e.Client.Get(e.Ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, into)
}
