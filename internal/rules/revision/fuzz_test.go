package revision

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/seed-69ecc383/kruise/test/kit/build"
)

// FuzzTemplate reads revisions that anybody may have written. What can be read must come out the same after it is written, and written again.
func FuzzTemplate(f *testing.F) {
	f.Add([]byte(sample("nginx:alpine", "Always")))
	f.Add([]byte(`{"spec":{"template":{}}}`))
	f.Add(
		[]byte(
			`{"spec":{"template":{"metadata":{"creationTimestamp":"2024-02-03T04:05:06Z"},"spec":{"volumes":[{"name":"v","ephemeral":{"volumeClaimTemplate":{"metadata":null,"spec":{"resources":{"requests":{"storage":"0.5Gi"}}}}}}]}}}}`,
		),
	)
	f.Add([]byte(`{"spec":{"template":{"spec":{"tolerations":[{"tolerationSeconds":9223372036854775807}],"containers":null}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		template, err := Template(build.Revision("web-x", 1, string(data)))
		if err != nil {
			return
		}
		once, err := Data(template)
		if err != nil {
			return // a time past the year 9999 can be read but not written
		}
		again, err := Template(build.Revision("web-x", 1, string(once)))
		if err != nil {
			t.Fatalf("what was written can't be read: %v\n%s", err, once)
		}
		if !equality.Semantic.DeepEqual(template, again) {
			t.Fatalf("the template has changed on its way:\n%s\n%s", data, once)
		}
		if twice, err := Data(again); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("the bytes differ the second time (%v):\n%s\n%s", err, once, twice)
		}
	})
}
