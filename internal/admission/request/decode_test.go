package request

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
)

func TestParse(t *testing.T) {
	template := func(spec string) string {
		return `{"kind":"CloneSet","metadata":{"labels":{"commit":"7e123456"}},"spec":{"template":{"spec":` + spec + `}}}`
	}
	for name, tc := range map[string]struct{ object, wantError string }{
		"an ordinary object": {object: template(`{"containers":[{"resources":{"limits":{"cpu":"1e3","memory":"1.5e-2","a":"10e018"}}}]}`)},
		"other texts that look like numbers": {
			object: template(`{"containers":[{"args":["1e-99999999"],"env":[{"name":"limits","value":"1e-99999999"}]}]}`),
		},
		"a request too small to read": {
			object:    template(`{"containers":[{"resources":{"requests":{"cpu":"1e-99999999"}}}]}`),
			wantError: `spec.template.spec.containers[0].resources.requests cpu: quantity "1e-99999999" is out of range`,
		},
		"a size too small to read": {
			object:    template(`{"volumes":[{"emptyDir":{"sizeLimit":"1E-00099999999"}}]}`),
			wantError: `spec.template.spec.volumes[0].emptyDir.sizeLimit : quantity "1E-00099999999" is out of range`,
		},
		"no JSON": {object: `{`, wantError: "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			u, err := Parse(runtime.RawExtension{Raw: []byte(tc.object)})
			if err == nil {
				_, err = Decode[v1beta1.CloneSet](u)
			}
			if tc.wantError == "" && err != nil || tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError)) {
				t.Errorf("got %v, want %q", err, tc.wantError)
			}
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}
