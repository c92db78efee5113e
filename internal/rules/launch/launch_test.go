package launch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// podOf returns a Pod of containers with priorities, as name=value; none without a value.
func podOf(containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "1"}}
	for _, text := range containers {
		name, value, has := strings.Cut(text, "=")
		c := corev1.Container{Name: name}
		if has {
			c.Env = []corev1.EnvVar{{Name: keys.ContainerPriorityEnv, Value: value}}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func TestPriorities(t *testing.T) {
	elsewhere := podOf("a", "b")
	elsewhere.Spec.Containers[0].Env = []corev1.EnvVar{{Name: keys.ContainerPriorityEnv, ValueFrom: &corev1.EnvVarSource{}}}
	twice := podOf("a=1", "b")
	twice.Spec.Containers[0].Env = append(twice.Spec.Containers[0].Env, corev1.EnvVar{Name: keys.ContainerPriorityEnv, Value: "5"})
	ordered := podOf("a=7", "b=nonsense", "c")
	ordered.Annotations = map[string]string{keys.ContainerLaunchPriority: "Ordered"}
	cases := map[string]struct {
		pod     *corev1.Pod
		want    []int32
		wantErr string
	}{
		"nothing is asked for":           {pod: podOf("a", "b")},
		"only zeros":                     {pod: podOf("a=0", "b")},
		"all are equal":                  {pod: podOf("a=3", "b=3")},
		"one container":                  {pod: podOf("a=3")},
		"one container is not looked at": {pod: podOf("a=x")},
		"one is higher":                  {pod: podOf("a", "b=1"), want: []int32{0, 1}},
		"both ends of the range":         {pod: podOf("a=-2147483647", "b=2147483647"), want: []int32{-2147483647, 2147483647}},
		"the last of two counts":         {pod: twice, want: []int32{5, 0}},
		"the annotation goes before variables of any value": {pod: ordered, want: []int32{0, -1, -2}},
		"not a number":   {pod: podOf("a=abc", "b"), wantErr: `container a has KRUISE_CONTAINER_PRIORITY="abc": write a whole number from -2147483647 to 2147483647`},
		"out of range":   {pod: podOf("a=-2147483648", "b"), wantErr: `container a has KRUISE_CONTAINER_PRIORITY="-2147483648": write a whole number from -2147483647 to 2147483647`},
		"empty":          {pod: podOf("a=", "b"), wantErr: `container a has KRUISE_CONTAINER_PRIORITY="": write a whole number from -2147483647 to 2147483647`},
		"from elsewhere": {pod: elsewhere, wantErr: "container a takes KRUISE_CONTAINER_PRIORITY from elsewhere: write the number itself as its value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Priorities(tc.pod)
			if text := fmt.Sprint(err); (err != nil || tc.wantErr != "") && text != tc.wantErr {
				t.Errorf("error %s, want %s", text, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetBarrierReplacesWhatAPodBringsAlong(t *testing.T) {
	p := podOf("a=1", "b")
	SetBarrier(p, "other-barrier", []int32{7, 8})
	p.Spec.Containers[1].Env = append(p.Spec.Containers[1].Env, corev1.EnvVar{Name: keys.ContainerBarrierEnv, Value: "by hand"})
	SetBarrier(p, "web-barrier", []int32{1, 0})
	want := [][]corev1.EnvVar{
		{{Name: keys.ContainerPriorityEnv, Value: "1"}, reference1("web-barrier", "p_1")},
		{reference1("web-barrier", "p_0")},
	}
	if diff := cmp.Diff(want, [][]corev1.EnvVar{p.Spec.Containers[0].Env, p.Spec.Containers[1].Env}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again := p.DeepCopy()
	SetBarrier(again, "web-barrier", []int32{1, 0})
	if diff := cmp.Diff(p, again); diff != "" {
		t.Errorf("done again, it changes something (-before +after):\n%s", diff)
	}
	SetBarrier(p, "", nil)
	if IsOrdered(p) || len(p.Spec.Containers[0].Env) != 1 {
		t.Errorf("without priorities the containers still wait: %+v", p.Spec.Containers)
	}
}

func reference1(barrier, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: keys.ContainerBarrierEnv, ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: barrier}, Key: key},
	}}
}

// with gives containers a status: ready, or done with an exit code.
func with(p *corev1.Pod, statuses ...corev1.ContainerStatus) *corev1.Pod {
	p.Status.ContainerStatuses = statuses
	return p
}

func held(priorities ...int32) *corev1.Pod {
	p := podOf("a", "b", "c")
	p.Spec.Containers = p.Spec.Containers[:len(priorities)]
	SetBarrier(p, "web-barrier", priorities)
	return p
}

func TestNext(t *testing.T) {
	ready := func(name string) corev1.ContainerStatus { return corev1.ContainerStatus{Name: name, Ready: true} }
	ended := func(name string, code int32) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}}
	}
	never := func(p *corev1.Pod) *corev1.Pod {
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		return p
	}
	malformed := held(1, 0)
	malformed.Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Key = "p"
	malformed.Spec.Containers[1].Env[0].ValueFrom = nil
	cases := map[string]struct {
		pod  *corev1.Pod
		want Turn
		none bool
	}{
		"at first the highest":               {pod: held(1, 0, 0), want: Turn{Priority: 1, Keys: []string{"p_1"}}},
		"then the rest":                      {pod: with(held(1, 0, 0), ready("a")), want: Turn{Priority: 0, Last: true, Keys: []string{"p_1", "p_0"}}},
		"in order of the list":               {pod: with(held(0, -1, -2), ready("a")), want: Turn{Priority: -1, Keys: []string{"p_0", "p_-1"}}},
		"all are ready":                      {pod: with(held(1, 0), ready("a"), ready("b")), want: Turn{Priority: 0, Last: true, Keys: []string{"p_1", "p_0"}}},
		"half of a group is not enough":      {pod: with(held(1, 1, 0), ready("a")), want: Turn{Priority: 1, Keys: []string{"p_1"}}},
		"one that ended well, for ever":      {pod: never(with(held(1, 0), ended("a", 0))), want: Turn{Priority: 0, Last: true, Keys: []string{"p_1", "p_0"}}},
		"one that ended badly":               {pod: never(with(held(1, 0), ended("a", 1))), want: Turn{Priority: 1, Keys: []string{"p_1"}}},
		"one that ended well and restarts":   {pod: with(held(1, 0), ended("a", 0)), want: Turn{Priority: 1, Keys: []string{"p_1"}}},
		"nothing is held":                    {pod: podOf("a", "b"), none: true},
		"references that others have spoilt": {pod: malformed, none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.pod.Spec.RestartPolicy == "" {
				tc.pod.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
			got, ok := Next(tc.pod)
			if ok == tc.none {
				t.Fatalf("there is a turn: %t", ok)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestContainersStartInOrder plays Pods of any priorities: whenever a container has its key, all of a higher priority are ready, and in the end
// all have started.
func TestContainersStartInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(rapid.Int32Range(-2, 2), 2, 6).Draw(t, "priorities")
		p := &corev1.Pod{}
		for i := range given {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprint(i)})
		}
		SetBarrier(p, "barrier", given)
		barrier := &corev1.ConfigMap{}
		up := map[int]bool{}
		for len(up) < len(given) {
			turn, ok := Next(p)
			if !ok {
				t.Fatal("nothing is held")
			}
			Open(barrier, turn)
			var startable []int
			for i, priority := range given {
				if barrier.Data[Key(priority)] != "true" {
					continue
				}
				for j, other := range given {
					if other > priority && !up[j] {
						t.Fatalf("container %d of priority %d may start before container %d of priority %d", i, priority, j, other)
					}
				}
				if !up[i] {
					startable = append(startable, i)
				}
			}
			if len(startable) == 0 {
				t.Fatalf("nothing can start; the barrier has %v, up are %v of %v", barrier.Data, up, given)
			}
			next := rapid.SampledFrom(startable).Draw(t, "starts")
			up[next] = true
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: fmt.Sprint(next), Ready: true})
		}
		turn, _ := Next(p)
		Open(barrier, turn)
		if !turn.Last || barrier.Immutable == nil || !*barrier.Immutable {
			t.Errorf("all are up, and the turn is %+v", turn)
		}
	})
}

func TestBelongs(t *testing.T) {
	p := podOf("a")
	cases := map[string]struct {
		owners []metav1.OwnerReference
		want   Ownership
	}{
		"its own":                      {[]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "1"}}, Owned},
		"an earlier Pod's":             {[]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "0"}}, Outdated},
		"nobody's":                     {nil, Foreign},
		"another Pod's":                {[]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "api", UID: "0"}}, Foreign},
		"an earlier Pod's and another": {[]metav1.OwnerReference{{Kind: "Pod", Name: "web", UID: "0"}, {Kind: "Node", Name: "n", UID: "9"}}, Foreign},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OwnershipOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: tc.owners}}, p); got != tc.want {
				t.Errorf("OwnershipOf() = %v, want %v", got, tc.want)
			}
		})
	}
}
