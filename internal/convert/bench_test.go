package convert

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BenchmarkHandler converts a page of a list, as the API server asks for it.
func BenchmarkHandler(b *testing.B) {
	const page = 500
	object := []byte(`{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","metadata":{"name":"web","namespace":"ns","labels":{"app":"web"}},
		"spec":{"replicas":5,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app","image":"nginx"}]}},
		"scaleStrategy":{"enablePVCReuse":true},"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"podUpdatePolicy":"InPlaceIfPossible","partition":0,"maxUnavailable":"20%",
		"inPlaceUpdateStrategy":{"gracePeriodSeconds":10}}}},"status":{"replicas":5}}`)
	review := apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{DesiredAPIVersion: "apps.kruise.io/v1alpha1"}}
	for range page {
		review.Request.Objects = append(review.Request.Objects, runtime.RawExtension{Raw: object})
	}
	body, err := json.Marshal(review)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if code, answer := post(b, body); code != 200 {
			b.Fatalf("answered %d %s", code, answer)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*page), "µs/object")
}
