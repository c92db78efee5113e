package build

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Revision returns a stored revision with this number and these bytes.
func Revision(name string, number int64, data string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default",
			CreationTimestamp: metav1.NewTime(Start().Add(time.Duration(number) * time.Minute))},
		Revision: number,
		Data:     runtime.RawExtension{Raw: []byte(data)},
	}
}
