package simnode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestAPodsLife(t *testing.T) {
	tests := map[string]struct {
		story story
		want  []string
	}{
		"a pod runs after its start delay and then stays as it is": {
			story: story{pod: pod("app=nginx:1")},
			want:  []string{"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+"},
		},
		"the start delay is the pod's to choose": {
			story: story{pod: pod("app=nginx:1", annotated(AnnotationStartDelay, "2s"))},
			want:  []string{"0s Pending app=ContainerCreating", "2s Running Ready app=nginx:1+"},
		},
		"a container is ready after its ready delay": {
			story: story{pod: pod("app=nginx:1 log=log:1", annotated(AnnotationReadyDelay+".app", "1s"))},
			want: []string{
				"0s Pending app=ContainerCreating log=ContainerCreating",
				"300ms Running app=nginx:1 log=log:1+", "1.3s Running Ready app=nginx:1+ log=log:1+",
			},
		},
		"a readiness gate keeps a pod from being Ready until its condition is True": {
			story: story{pod: pod("app=nginx:1", gated), events: []event{{time.Second, gate(corev1.ConditionTrue)}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running gated app=nginx:1+", "1s Running Ready app=nginx:1+",
			},
		},
		"init containers run one after the other before the main ones": {
			story: story{pod: pod("app=nginx:1", initContainer("a", "a:1"), initContainer("b", "b:1"))},
			want: []string{
				"0s Pending a=PodInitializing b=PodInitializing app=PodInitializing",
				"300ms Pending a=a:1 b=PodInitializing app=PodInitializing",
				"400ms Pending a=exit(0)+ b=b:1 app=PodInitializing",
				"500ms Running Ready a=exit(0)+ b=exit(0)+ app=nginx:1+",
			},
		},
		"a pod that somebody else ends stays as it is, and what still runs is stopped": {
			story: story{pod: pod("app=nginx:1 log=log:1", restartPolicy(corev1.RestartPolicyNever)), events: []event{
				{time.Second, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }},
			}},
			want: []string{
				"0s Pending app=ContainerCreating log=ContainerCreating", "300ms Running Ready app=nginx:1+ log=log:1+",
				"1s Succeeded app=exit(137) log=exit(137)",
			},
		},
		"a sidecar starts before the main containers and keeps running": {
			story: story{pod: pod("app=nginx:1", sidecar("proxy", "envoy:1"))},
			want: []string{
				"0s Pending proxy=PodInitializing app=PodInitializing",
				"300ms Running Ready proxy=envoy:1+ app=nginx:1+",
			},
		},
		"an init container that fails for good fails the pod": {
			story: story{pod: pod("app=nginx:1", initContainer("a", "a:1"), restartPolicy(corev1.RestartPolicyNever),
				annotated(AnnotationExitCode+".a", "3"))},
			want: []string{
				"0s Pending a=PodInitializing app=PodInitializing", "300ms Pending a=a:1 app=PodInitializing",
				"400ms Failed a=exit(3) app=exit(137)",
			},
		},
		"a changed image restarts that container alone": {
			story: story{pod: pod("app=nginx:1 log=log:1"), events: []event{{time.Second, setImage(0, "nginx:2")}}},
			want: []string{
				"0s Pending app=ContainerCreating log=ContainerCreating", "300ms Running Ready app=nginx:1+ log=log:1+",
				"1s Running app=exit(0) log=log:1+", "1.5s Running Ready app=nginx:2#1+ log=log:1+",
			},
		},
		"an image that changes again while the container restarts is the one that runs": {
			story: story{pod: pod("app=nginx:1"), events: []event{
				{time.Second, setImage(0, "nginx:2")}, {1200 * time.Millisecond, setImage(0, "nginx:3")},
			}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+", "1s Running app=exit(0)",
				"1.2s Running app=exit(0)", "1.5s Running Ready app=nginx:3#1+",
			},
		},
		"a changed image that cannot be pulled leaves the container waiting until the image is right": {
			story: story{pod: pod("app=nginx:1"), events: []event{
				{time.Second, setImage(0, "nginx:fail-pull")}, {5 * time.Second, setImage(0, "nginx:2")},
			}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+", "1s Running app=exit(0)",
				"1.5s Running app=ErrImagePull", "2.5s Running app=ImagePullBackOff", "5s Running Ready app=nginx:2#1+",
			},
		},
		"an image that cannot be pulled keeps a new pod Pending": {
			story: story{pod: pod("app=nginx:2-fail-pull")},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Pending app=ErrImagePull", "1.3s Pending app=ImagePullBackOff",
			},
		},
		"an image that is not a name is never pulled": {
			story: story{pod: pod("app=UPPER:1")},
			want:  []string{"0s Pending app=ContainerCreating", "300ms Pending app=InvalidImageName"},
		},
		"a never-ready image runs and is not ready": {
			story: story{pod: pod("app=nginx:never-ready")},
			want:  []string{"0s Pending app=ContainerCreating", "300ms Running app=nginx:never-ready"},
		},
		"a crashing image ends in a crash loop with growing pauses": {
			story: story{pod: pod("app=nginx:crash"), until: 13 * time.Second},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:crash+", "400ms Running app=exit(1)",
				"900ms Running Ready app=nginx:crash#1+", "1s Running app=CrashLoopBackOff#1",
				"11s Running Ready app=nginx:crash#2+", "11.1s Running app=CrashLoopBackOff#2",
			},
		},
		"a crash loop ends at once with another image": {
			story: story{pod: pod("app=nginx:crash"), events: []event{{2 * time.Second, setImage(0, "nginx:2")}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:crash+", "400ms Running app=exit(1)",
				"900ms Running Ready app=nginx:crash#1+", "1s Running app=CrashLoopBackOff#1", "2s Running Ready app=nginx:2#2+",
			},
		},
		"a pod that is not to restart succeeds when its containers have run": {
			story: story{pod: pod("app=job:1", restartPolicy(corev1.RestartPolicyNever))},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=job:1+", "1.3s Succeeded app=exit(0)",
			},
		},
		"a pod that is not to restart fails with its container, and its sidecar ends": {
			story: story{pod: pod("app=job:1", restartPolicy(corev1.RestartPolicyNever), sidecar("proxy", "envoy:1"),
				annotated(AnnotationRunFor, "2s", AnnotationExitCode, "7"))},
			want: []string{
				"0s Pending proxy=PodInitializing app=PodInitializing", "300ms Running Ready proxy=envoy:1+ app=job:1+",
				"2.3s Failed proxy=exit(0) app=exit(7)",
			},
		},
		"a container that fails is restarted under OnFailure, one that succeeds is not": {
			story: story{pod: pod("a=job:1 b=job:1", restartPolicy(corev1.RestartPolicyOnFailure),
				annotated(AnnotationExitCode+".a", "1"), annotated(AnnotationRunFor+".b", "forever")), until: 2 * time.Second},
			want: []string{
				"0s Pending a=ContainerCreating b=ContainerCreating", "300ms Running Ready a=job:1+ b=job:1+",
				"1.3s Running a=exit(1) b=job:1+", "1.8s Running Ready a=job:1#1+ b=job:1+",
			},
		},
		"changed resources take effect after a while without a restart": {
			story: story{pod: pod("app=nginx:1", setCPU(0, "1")), events: []event{{time.Second, setCPU(0, "2")}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+[1]",
				"1s Running Ready resizing app=nginx:1+[1]", "1.2s Running Ready app=nginx:1+[2]",
			},
		},
		"changed resources restart the container if its resize policy says so": {
			story: story{
				pod: pod("app=nginx:1", setCPU(0, "1"), func(p *corev1.Pod) {
					p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
						{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer},
					}
				}),
				events: []event{{time.Second, setCPU(0, "2")}},
			},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+[1]",
				"1s Running Ready resizing app=nginx:1+[1]", "1.2s Running app=exit(0)[2]", "1.7s Running Ready app=nginx:1#1+[2]",
			},
		},
		"a refused change of resources is pending until it is taken back": {
			story: story{
				pod:    pod("app=nginx:1", setCPU(0, "1"), annotated(AnnotationFailResize, "Infeasible")),
				events: []event{{time.Second, setCPU(0, "2")}, {2 * time.Second, setCPU(0, "1")}},
			},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+[1]",
				"1s Running Ready resize=Infeasible app=nginx:1+[1]", "2s Running Ready app=nginx:1+[1]",
			},
		},
		"a deleted pod stops after its stop delay and is gone": {
			story: story{pod: pod("app=nginx:1"), events: []event{{time.Second, deleted(30)}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+",
				"1.2s Succeeded app=exit(0)", "1.2s gone",
			},
		},
		"the stop delay begins after the sleep of a preStop hook, the longest if there are several": {
			story: story{pod: pod("app=nginx:1 log=log:1", sleepsBeforeStop(0, 1), sleepsBeforeStop(1, 3)),
				events: []event{{time.Second, deleted(30)}}},
			want: []string{
				"0s Pending app=ContainerCreating log=ContainerCreating", "300ms Running Ready app=nginx:1+ log=log:1+",
				"4.2s Succeeded app=exit(0) log=exit(0)", "4.2s gone",
			},
		},
		"a preStop hook has no more than the grace period": {
			story: story{pod: pod("app=nginx:1", sleepsBeforeStop(0, 60)), events: []event{{time.Second, deleted(2)}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+", "3s Succeeded app=exit(0)", "3s gone",
			},
		},
		"a deleted pod does not outlive its grace period": {
			story: story{pod: pod("app=nginx:1", annotated(AnnotationStopDelay, "1h")), events: []event{{time.Second, deleted(2)}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+", "3s Succeeded app=exit(0)", "3s gone",
			},
		},
		"a pod that is deleted before it runs is gone at once": {
			story: story{pod: pod("app=nginx:1"), events: []event{{100 * time.Millisecond, deleted(30)}}},
			want:  []string{"0s Pending app=ContainerCreating", "100ms Failed app=exit(137)", "100ms gone"},
		},
		"a container waits for the configuration it refers to": {
			story: story{pod: pod("app=nginx:1"), missing: func(at time.Duration) string {
				if at < 2*time.Second {
					return `configmap "env" not found`
				}
				return ""
			}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Pending app=CreateContainerConfigError", "2.3s Running Ready app=nginx:1+",
			},
		},
		"a killed container comes back": {
			story: story{pod: pod("app=nginx:1"), events: []event{{time.Second, annotated(AnnotationKill, "app/1")}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+",
				"1s Running app=exit(137)", "1.5s Running Ready app=nginx:1#1+",
			},
		},
		"an ephemeral container runs once beside the others": {
			story: story{pod: pod("app=nginx:1"), events: []event{{time.Second, func(p *corev1.Pod) {
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
					{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox:1"}},
				}
				p.Generation++
			}}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+",
				"1s Running Ready app=nginx:1+ debug=busybox:1", "2s Running Ready app=nginx:1+ debug=exit(0)",
			},
		},
		"an ephemeral container ends when and as the Pod says": {
			story: story{pod: pod("app=nginx:1"), events: []event{{time.Second, func(p *corev1.Pod) {
				p.Annotations = map[string]string{AnnotationRunFor + ".debug": "300ms", AnnotationExitCode + ".debug": "3"}
				p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
					{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox:1"}},
				}
				p.Generation++
			}}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+",
				"1s Running Ready app=nginx:1+ debug=busybox:1", "1.3s Running Ready app=nginx:1+ debug=exit(3)",
			},
		},
		"nothing restarts because the simulator did": {
			story: story{pod: pod("app=nginx:1 log=log:1", sidecar("proxy", "envoy:1"), initContainer("a", "a:1"), setCPU(0, "1")),
				restartAt: 5 * time.Second},
			want: []string{
				"0s Pending proxy=PodInitializing a=PodInitializing app=PodInitializing log=PodInitializing",
				"300ms Pending proxy=envoy:1+ a=a:1 app=PodInitializing log=PodInitializing",
				"400ms Running Ready proxy=envoy:1+ a=exit(0)+ app=nginx:1+[1] log=log:1+",
			},
		},
		"an image that changed while the simulator was away restarts its container": {
			story: story{pod: pod("app=nginx:1 log=log:1"), restartAt: 5 * time.Second,
				events: []event{{5 * time.Second, setImage(0, "nginx:2")}}},
			want: []string{
				"0s Pending app=ContainerCreating log=ContainerCreating", "300ms Running Ready app=nginx:1+ log=log:1+",
				"5s Running app=exit(0) log=log:1+", "5.5s Running Ready app=nginx:2#1+ log=log:1+",
			},
		},
		"a restart that the simulator's end cut short is made up for": {
			story: story{pod: pod("app=nginx:1"), restartAt: 1200 * time.Millisecond,
				events: []event{{time.Second, setImage(0, "nginx:2")}}},
			want: []string{
				"0s Pending app=ContainerCreating", "300ms Running Ready app=nginx:1+",
				"1s Running app=exit(0)", "1.2s Running Ready app=nginx:2#1+",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tell(t, tc.story)); diff != "" {
				t.Errorf("reports differ (-want +got):\n%s", diff)
			}
		})
	}
}
