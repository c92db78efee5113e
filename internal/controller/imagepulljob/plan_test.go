package imagepulljob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/seed-69ecc383/kruise/api/apps/pub"
	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/apply"
	"github.com/seed-69ecc383/kruise/internal/plan"
	"github.com/seed-69ecc383/kruise/internal/rules/pull"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cluster returns a snapshot of a job for nginx:1 and nodes, each a name and what it has come to: unasked, pulling, succeeded, failed, dark for one
// that is not Ready, bare for one without NodeImage.
func cluster(change func(*v1beta1.ImagePullJob), nodes ...string) Snapshot {
	job := &v1beta1.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "job", UID: "job"}}
	job.Spec.Image = "nginx:1"
	job.Status.StartTime = new(metav1.NewTime(now.Add(-time.Minute)))
	if change != nil {
		change(job)
	}
	s := Snapshot{Job: job, Now: now, Options: Options{Seal: plainly, Extra: 300 * time.Second}}
	for _, text := range nodes {
		words := strings.Fields(text)
		n := &v1beta1.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: words[0]}}
		ready := corev1.ConditionTrue
		phases := map[string]v1beta1.ImagePullPhase{
			"pulling": v1beta1.ImagePhasePulling, "succeeded": v1beta1.ImagePhaseSucceeded, "failed": v1beta1.ImagePhaseFailed,
		}
		bare := false
		for _, word := range words[1:] {
			switch word {
			case "dark":
				ready = corev1.ConditionFalse
			case "bare":
				bare = true
			}
			if phase, ok := phases[word]; ok {
				n = answered(job, n, phase)
			}
		}
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: words[0]}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}})
		if !bare {
			s.NodeImages = append(s.NodeImages, n)
		}
	}
	return s
}

func answered(job *v1beta1.ImagePullJob, n *v1beta1.NodeImage, phase v1beta1.ImagePullPhase) *v1beta1.NodeImage {
	n, err := pull.Want{Image: pull.Reference{Repository: "nginx", Tag: "1"}, Job: job, Now: now.Add(-time.Minute)}.Request(n)
	if err != nil {
		panic(err)
	}
	status := v1beta1.ImageTagStatus{Tag: "1", Phase: phase}
	if phase != v1beta1.ImagePhasePulling {
		status.CompletionTime = new(metav1.NewTime(now))
	}
	n.Status.ImageStatuses = map[string]v1beta1.ImageStatus{"nginx": {Tags: []v1beta1.ImageTagStatus{status}}}
	return n
}

func parallel(n int32) func(*v1beta1.ImagePullJob) {
	return func(j *v1beta1.ImagePullJob) { j.Spec.Parallelism = new(intstr.FromInt32(n)) }
}

// TestPlan: a wanted plan is the names of the nodes that are asked, and the message of the status.
func TestPlan(t *testing.T) {
	deadline := func(j *v1beta1.ImagePullJob) {
		j.Spec.Parallelism = new(intstr.FromInt32(9))
		j.Spec.CompletionPolicy.ActiveDeadlineSeconds = new(int64(60))
	}
	named := func(j *v1beta1.ImagePullJob) {
		j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{Names: []string{"c", "z", "a"}}
	}
	for name, tc := range map[string]struct {
		in      Snapshot
		asks    string
		message string
		over    bool
		counts  [4]int32 // desired, active, succeeded, failed
	}{
		"one node at a time if nothing is said":   {in: cluster(nil, "b", "a"), asks: "a", message: "job is running, progress 0.0%", counts: [4]int32{2, 0, 0, 0}},
		"as many as may pull at the same time":    {in: cluster(parallel(2), "a", "b", "c", "d"), asks: "a b", message: "job is running, progress 0.0%", counts: [4]int32{4, 0, 0, 0}},
		"those under way count":                   {in: cluster(parallel(2), "a pulling", "b", "c succeeded", "d failed"), asks: "b", message: "job is running, progress 50.0%", counts: [4]int32{4, 1, 1, 1}},
		"all places are taken":                    {in: cluster(parallel(1), "a pulling", "b", "c"), message: "job is running, progress 0.0%", counts: [4]int32{3, 1, 0, 0}},
		"a third of the way":                      {in: cluster(parallel(1), "a succeeded", "b pulling", "c"), message: "job is running, progress 33.3%", counts: [4]int32{3, 1, 1, 0}},
		"a pause":                                 {in: cluster(parallel(0), "a", "b dark"), message: "job is running, progress 0.0%; not ready: b", counts: [4]int32{2, 0, 0, 0}},
		"a node that is not ready takes no place": {in: cluster(parallel(1), "a dark", "b"), asks: "a b", message: "job is running, progress 0.0%; not ready: a", counts: [4]int32{2, 0, 0, 0}},
		"nor one that became so while it pulled":  {in: cluster(parallel(1), "a dark pulling", "b"), asks: "b", message: "job is running, progress 0.0%; not ready: a", counts: [4]int32{2, 1, 0, 0}},
		"all have answered":                       {in: cluster(nil, "a succeeded", "b failed"), message: "job has completed", over: true, counts: [4]int32{2, 0, 1, 1}},
		"a node has just come":                    {in: cluster(nil, "a succeeded", "b bare"), message: "job is running, progress 100.0%; waiting for the NodeImage of: b", counts: [4]int32{1, 0, 1, 0}},
		"a node that is not ready gets none":      {in: cluster(nil, "a succeeded", "b bare dark"), message: "job has completed", over: true, counts: [4]int32{1, 0, 1, 0}},
		"no nodes at all":                         {in: cluster(nil), message: "job has completed", over: true},
		"the deadline is over":                    {in: cluster(deadline, "a succeeded", "b pulling", "c", "d failed"), message: "job exceeds activeDeadlineSeconds", over: true, counts: [4]int32{4, 0, 1, 3}},
		"the deadline is over, and all is done":   {in: cluster(deadline, "a succeeded", "b failed"), message: "job has completed", over: true, counts: [4]int32{2, 0, 1, 1}},
		"nodes by name":                           {in: cluster(named, "a", "b", "c"), asks: "a", message: "job is running, progress 0.0%; no such node: z", counts: [4]int32{2, 0, 0, 0}},
		"none of the nodes by name is there":      {in: cluster(named, "b"), message: "job is running, no progress; no such node: a, c, z"},
		"an empty selector is all nodes":          {in: cluster(func(j *v1beta1.ImagePullJob) { j.Spec.Selector = &v1beta1.ImagePullJobNodeSelector{} }, "a", "b"), asks: "a", message: "job is running, progress 0.0%", counts: [4]int32{2, 0, 0, 0}},
		"an image that can't be read":             {in: cluster(func(j *v1beta1.ImagePullJob) { j.Spec.Image = "A" }, "a"), message: "invalid image A: invalid reference format: repository name (library/A) must be lowercase"},
		"a job that never completes":              {in: cluster(func(j *v1beta1.ImagePullJob) { j.Spec.CompletionPolicy.Type = v1beta1.NeverComplete }, "a succeeded"), message: "job is running, progress 100.0%", counts: [4]int32{1, 0, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			v := Classify(tc.in)
			var asks []string
			for _, a := range Plan(v).Actions() {
				if strings.HasPrefix(a.What, "pull nginx:1") {
					asks = append(asks, a.Object().GetName())
				}
			}
			if got := strings.Join(asks, " "); got != tc.asks {
				t.Errorf("asks %q, want %q\n%s", got, tc.asks, Plan(v))
			}
			s := Status(v, plan.Plan{}, apply.Outcome{})
			counts := [4]int32{s.Desired, s.Active, s.Succeeded, s.Failed}
			if s.Message != tc.message || (s.CompletionTime != nil) != tc.over || counts != tc.counts || int(s.Failed) != len(s.FailedNodes) {
				t.Errorf("status is %+v, want %v, %q, over %t", s, tc.counts, tc.message, tc.over)
			}
			if diff := cmp.Diff(Plan(v).String(), Plan(Classify(tc.in)).String()); diff != "" {
				t.Errorf("planned twice (-first +second):\n%s", diff)
			}
		})
	}
}

func TestNodesWithoutAServingDaemonTakeNoPlace(t *testing.T) {
	s := cluster(parallel(1), "a", "b", "c")
	daemon := func(node string, ready corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "daemon-" + node}, Spec: corev1.PodSpec{NodeName: node}}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
		return p
	}
	s.Daemons = []*corev1.Pod{daemon("a", corev1.ConditionFalse), daemon("c", corev1.ConditionTrue)}
	v := Classify(s)
	if n := len(Plan(v).Actions()); n != 3 {
		t.Errorf("%d nodes are asked, want the two without a daemon and the one with\n%s", n, Plan(v))
	}
	if message := Status(v, plan.Plan{}, apply.Outcome{}).Message; !strings.HasSuffix(message, "; not ready: a, b") {
		t.Errorf("message is %q", message)
	}
}

func TestEndOfAJob(t *testing.T) {
	ended := func(ttl *int32, finalizers ...string) Snapshot {
		return cluster(func(j *v1beta1.ImagePullJob) {
			j.Finalizers = finalizers
			j.Status.CompletionTime = new(metav1.NewTime(now.Add(-time.Minute)))
			j.Spec.CompletionPolicy.TTLSecondsAfterFinished = ttl
		}, "a")
	}
	for name, tc := range map[string]struct {
		in      Snapshot
		does    []plan.Verb
		recheck time.Duration
	}{
		"without a time to live it stays":            {ended(nil, "other"), nil, 0},
		"its time is not up":                         {ended(new(int32(90)), "other"), nil, 30 * time.Second},
		"its time is up":                             {ended(new(int32(60)), "other"), []plan.Verb{plan.Delete}, 0},
		"the finalizer of older installations goes":  {ended(nil, keys.ImagePullJobFinalizer, "other"), []plan.Verb{plan.Update}, 0},
		"it goes first where the time is up as well": {ended(new(int32(60)), keys.ImagePullJobFinalizer, "other"), []plan.Verb{plan.Update}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := Plan(Classify(tc.in))
			var does []plan.Verb
			for _, a := range p.Actions() {
				does = append(does, a.Verb)
				if a.Verb != plan.Update {
					continue
				}
				if diff := cmp.Diff([]string{"other"}, a.After.GetFinalizers()); diff != "" {
					t.Errorf("finalizers (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.does, does); diff != "" || p.Recheck != tc.recheck {
				t.Errorf("plan (-want +got): %s\n%s", diff, p)
			}
		})
	}
}

// plainly seals nothing, so that what it was given can be read.
func plainly(public, text []byte, context string) ([]byte, error) {
	return []byte(string(public) + ": " + string(text) + " for " + strings.ReplaceAll(context, "\n", " ")), nil
}

func registrySecret(version string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "reg", UID: "reg", ResourceVersion: version}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"docker.io":{"username":"u"},"other.io":{"username":"o"}}}`)},
	}
}

// TestCredentialsComeWithTheRequest: those that fit the image alone, sealed for the daemon of the node.
func TestCredentialsComeWithTheRequest(t *testing.T) {
	s := cluster(func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"reg", "gone"} }, "a")
	s.NodeImages[0].Status.CredentialsKey = []byte("key")
	s.Sources = []Source{{Name: "reg", Secret: registrySecret("1")}, {Name: "gone", Missing: true}}
	v := Classify(s)
	p := Plan(v)
	if len(p.Stages) != 1 || p.Stages[0][0][0].What != "pull nginx:1" || p.Recheck != 5*time.Second {
		t.Fatalf("want one write, and another look at the Secrets:\n%s", p)
	}
	asked := p.Stages[0][0][0].After.(*v1beta1.NodeImage)
	sealed := asked.Spec.Images["nginx"].Tags[0].Credentials
	const want = `key: [{"username":"u"}] for kruise pull credentials a nginx 1 job`
	if len(sealed) != 1 || sealed[0].Owner != "job" || string(sealed[0].Sealed) != want || len(asked.Spec.Images["nginx"].PullSecrets) > 0 {
		t.Errorf("the node is given %s, want %s", sealed, want)
	}
	if message := Status(v, plan.Plan{}, apply.Outcome{}).Message; message != "job is running, progress 0.0%; there is no Secret gone" {
		t.Errorf("message %q", message)
	}
	for name, tc := range map[string]struct {
		source Source
		key    string
		want   string
	}{
		"nothing has changed":       {Source{Secret: registrySecret("1")}, "key", ""},
		"the Secret has changed":    {Source{Secret: registrySecret("2")}, "key", "seal credentials"},
		"the daemon has restarted":  {Source{Secret: registrySecret("1")}, "another key", "seal credentials"},
		"the Secret is gone":        {Source{Missing: true}, "key", "seal credentials"},
		"it can't be read just now": {Source{Problem: "reading Secret reg: timeout"}, "key", ""},
	} {
		image := asked.DeepCopy()
		image.Status.CredentialsKey = []byte(tc.key)
		s.NodeImages, s.Sources = []*v1beta1.NodeImage{image}, []Source{tc.source}
		does := ""
		if actions := Plan(Classify(s)).Actions(); len(actions) > 0 {
			does = actions[0].What
		}
		if does != tc.want {
			t.Errorf("%s: does %q, want %q", name, does, tc.want)
		}
	}
}

// TestANodeWithoutAKeyIsAskedLater: its daemon has just started, or is of an earlier version, and would pull without credentials.
func TestANodeWithoutAKeyIsAskedLater(t *testing.T) {
	s := cluster(func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"reg"} }, "a", "b", "c dark")
	s.NodeImages[1].Status.CredentialsKey = []byte("key")
	s.Sources = []Source{{Name: "reg", Secret: registrySecret("1")}}
	v := Classify(s)
	if got := askedNodes(Plan(v)); got != "b c" {
		t.Errorf("asked are %s, want b and, as it is not ready, c", got)
	}
	const want = "job is running, progress 0.0%; not ready: c; waiting for a daemon that can be given credentials on: a"
	if message := Status(v, plan.Plan{}, apply.Outcome{}).Message; message != want {
		t.Errorf("message %q", message)
	}
	s.Now = s.Job.Status.StartTime.Add(pull.ResponseTimeout)
	if got := askedNodes(Plan(Classify(s))); got != "a c" {
		t.Errorf("after ten minutes %s are asked, want a, too, as parallelism is 1", got)
	}
}

func askedNodes(p plan.Plan) string {
	var names []string
	for _, a := range p.Actions() {
		names = append(names, a.After.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestOtherSecretsAreNotUsed: who may create a job need not be allowed to read the Secrets of its namespace, let alone to show them to nodes.
func TestOtherSecretsAreNotUsed(t *testing.T) {
	s := cluster(func(j *v1beta1.ImagePullJob) { j.Spec.PullSecrets = []string{"db"} }, "a")
	source := registrySecret("1")
	source.Type = corev1.SecretTypeOpaque
	s.Sources = []Source{{Name: "db", Secret: source}}
	v := Classify(s)
	asked := Plan(v).Actions()[0].After.(*v1beta1.NodeImage)
	if sealed := asked.Spec.Images["nginx"].Tags[0].Credentials; len(sealed) > 0 {
		t.Errorf("the node is given %s", sealed)
	}
	const want = "; Secret db is of type Opaque, which holds no credentials of registries"
	if message := Status(v, plan.Plan{}, apply.Outcome{}).Message; !strings.HasSuffix(message, want) {
		t.Errorf("message %q", message)
	}
}

// TestAJobThatIsOverStaysOver: a status that arrives late, from a controller that has been replaced, must not have the nodes asked again.
func TestAJobThatIsOverStaysOver(t *testing.T) {
	if !Kind(Options{}).Exact {
		t.Error("a status is written over one that it was not judged from")
	}
}

func TestNodesOfPodsGoInTheOrderOfTheUpdate(t *testing.T) {
	pods := func(labels ...string) []*corev1.Pod {
		var out []*corev1.Pod
		for i, node := range []string{"a", "b", "c", "d"} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", i), Labels: map[string]string{}}, Spec: corev1.PodSpec{NodeName: node}}
			p.Status.Phase = corev1.PodRunning
			for _, l := range labels {
				if strings.HasPrefix(l, node) {
					p.Labels["weight"] = l[1:]
				}
			}
			out = append(out, p)
		}
		return append(out,
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-5"}},
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-6"}, Spec: corev1.PodSpec{NodeName: "e"}, Status: corev1.PodStatus{Phase: corev1.PodFailed}},
		)
	}
	priority := &pub.UpdatePriorityStrategy{OrderPriority: []pub.UpdatePriorityOrderTerm{{OrderedKey: "weight"}}}
	for name, tc := range map[string]struct {
		workload Workload
		pods     []*corev1.Pod
		want     string
	}{
		"no workload":   {Workload{}, pods(), "a b c d"},
		"a DaemonSet":   {Workload{DaemonSet: &v1beta1.DaemonSet{}}, pods(), "d c b a"},
		"a StatefulSet": {Workload{StatefulSet: &v1beta1.StatefulSet{}}, pods(), "d c b a"},
		"a CloneSet with priorities": {Workload{CloneSet: &v1beta1.CloneSet{Spec: v1beta1.CloneSetSpec{UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
			RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{PriorityStrategy: priority},
		}}}}, pods("a1", "b3", "c4", "d2"), "c b d a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster(func(j *v1beta1.ImagePullJob) {
				j.Spec.PodSelector = &v1beta1.ImagePullJobPodSelector{}
				j.Spec.Parallelism = new(intstr.FromString("9"))
			}, "a", "b", "c", "d", "e", "f")
			s.Pods, s.Workload = tc.pods, tc.workload
			var asks []string
			for _, a := range Plan(Classify(s)).Actions() {
				asks = append(asks, a.Object().GetName())
			}
			if got := strings.Join(asks, " "); got != tc.want {
				t.Errorf("nodes are asked in the order %q, want %q", got, tc.want)
			}
		})
	}
}
