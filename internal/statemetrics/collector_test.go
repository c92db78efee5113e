package statemetrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/apps/v1beta1"
	rolloutsv1beta1 "github.com/seed-69ecc383/kruise/api/rollouts/v1beta1"
)

// cache holds CloneSets and Rollouts, and fails to list all else.
type cache struct {
	client.Reader
	sets     []v1beta1.CloneSet
	rollouts []rolloutsv1beta1.Rollout
}

func (c *cache) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1beta1.CloneSetList:
		list.Items = c.sets
	case *rolloutsv1beta1.RolloutList:
		list.Items = c.rollouts
	default:
		return errors.New("the cache is being filled")
	}
	return nil
}

func now() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) }

func at(ago time.Duration) metav1.Time { return metav1.NewTime(now().Add(-ago)) }

func set(name string) v1beta1.CloneSet {
	half := intstr.FromString("50%")
	out := v1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 7, CreationTimestamp: at(time.Hour)},
		Spec: v1beta1.CloneSetSpec{UpdateStrategy: v1beta1.CloneSetUpdateStrategy{
			RollingUpdate: &v1beta1.RollingUpdateCloneSetStrategy{Partition: &half},
		}},
		Status: v1beta1.CloneSetStatus{
			ObservedGeneration: 6, Replicas: 10, ReadyReplicas: 9, AvailableReplicas: 8, UpdatedReplicas: 3, UpdatedReadyReplicas: 2,
			UpdatedAvailableReplicas: 1, ExpectedUpdatedReplicas: 5,
			Conditions: []v1beta1.CloneSetCondition{
				{Type: v1beta1.CloneSetConditionWaiting, Status: corev1.ConditionTrue, Reason: "PodUnavailableBudget", LastTransitionTime: at(90 * time.Second)},
				{Type: v1beta1.CloneSetConditionProgressing, Status: corev1.ConditionFalse, Reason: v1beta1.CloneSetProgressDeadlineExceeded},
			},
		},
	}
	out.Spec.Replicas = ptr.To[int32](10)
	return out
}

func leading() <-chan struct{} {
	leads := make(chan struct{})
	close(leads)
	return leads
}

func collectorOf(c *cache, limit int, kinds ...Kind) *Collector {
	return New(Options{Reader: c, Leads: leading(), Limit: limit, Now: now}, kinds...)
}

// series returns the values that a scrape is answered with, by metric and labels.
func series(t *testing.T, c *Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			out[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = metric.GetGauge().GetValue()
		}
	}
	return out
}

// expect checks the values of series; -1 stands for none.
func expect(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if is, ok := got[name]; ok != (value >= 0) || ok && is != value {
			t.Errorf("%s is %v, %v; want %v", name, is, ok, value)
		}
	}
}

// count returns how many series a metric has.
func count(all map[string]float64, metric string) (n int) {
	for name := range all {
		if strings.HasPrefix(name, metric+"{") {
			n++
		}
	}
	return n
}

func TestACloneSetHasMetrics(t *testing.T) {
	got := series(t, collectorOf(&cache{sets: []v1beta1.CloneSet{set("web")}}, 10, cloneSets()))
	expect(t, got, map[string]float64{
		"kruise_cloneset_status_replicas_expected_updated{cloneset=web,namespace=shop}":                                                    5,
		"kruise_cloneset_spec_strategy_partition{cloneset=web,namespace=shop}":                                                             5,
		"kruise_cloneset_status_replicas_updated_available{cloneset=web,namespace=shop}":                                                   1,
		"kruise_cloneset_metadata_generation{cloneset=web,namespace=shop}":                                                                 7,
		"kruise_cloneset_status_observed_generation{cloneset=web,namespace=shop}":                                                          6,
		"kruise_workload_waiting_seconds{kind=CloneSet,name=web,namespace=shop,reason=PodUnavailableBudget}":                               90,
		"kruise_workload_pods{kind=CloneSet,name=web,namespace=shop,state=to_update}":                                                      5,
		"kruise_workload_pods{kind=CloneSet,name=web,namespace=shop,state=desired}":                                                        10,
		"kruise_cloneset_status_condition{cloneset=web,condition=Progressing,namespace=shop,reason=ProgressDeadlineExceeded,status=False}": 1,
		"kruise_cloneset_status_condition{cloneset=web,condition=Waiting,namespace=shop,reason=PodUnavailableBudget,status=True}":          1,
	})
	if n := count(got, "kruise_workload_pods"); n != 7 {
		t.Errorf("there are %d states of Pods, want 7", n)
	}
}

// TestSeriesGoWithTheirObject, and none is there of a manager that does not lead.
func TestSeriesGoWithTheirObject(t *testing.T) {
	held := &cache{sets: []v1beta1.CloneSet{set("web"), set("api")}}
	c := collectorOf(held, 10, cloneSets())
	if n := count(series(t, c), "kruise_cloneset_created"); n != 2 {
		t.Errorf("%d CloneSets have series, want 2", n)
	}
	held.sets = held.sets[:1]
	if n := count(series(t, c), "kruise_cloneset_created"); n != 1 {
		t.Errorf("%d CloneSets have series after a deletion, want 1", n)
	}
	c.Leads = make(chan struct{})
	if got := series(t, c); len(got) != 0 {
		t.Errorf("a manager that does not lead serves %v", got)
	}
}

// TestTheLimitLeavesObjectsOut: the first ones by name have series, and the rest is counted.
func TestTheLimitLeavesObjectsOut(t *testing.T) {
	held := &cache{}
	for i := range 5 {
		held.sets = append(held.sets, set(fmt.Sprintf("web-%d", 4-i)))
	}
	held.rollouts = make([]rolloutsv1beta1.Rollout, 2)
	got := series(t, collectorOf(held, 3, cloneSets(), Rollouts()))
	expect(t, got, map[string]float64{
		"kruise_state_metrics_objects_left_out{}":                            4,
		"kruise_cloneset_metadata_generation{cloneset=web-2,namespace=shop}": 7,
		"kruise_cloneset_metadata_generation{cloneset=web-3,namespace=shop}": -1,
	})
	if n := count(got, "kruise_rollout_created"); n != 0 {
		t.Errorf("%d Rollouts have series beyond the limit", n)
	}
}

// TestAKindThatCantBeReadIsSaid, and keeps no other kind from being served.
func TestAKindThatCantBeReadIsSaid(t *testing.T) {
	got := series(t, collectorOf(&cache{sets: []v1beta1.CloneSet{set("web")}}, 10, statefulSets(), cloneSets()))
	expect(t, got, map[string]float64{
		"kruise_state_metrics_up{kind=CloneSet}": 1, "kruise_state_metrics_up{kind=StatefulSet}": 0,
		"kruise_cloneset_spec_replicas{cloneset=web,namespace=shop}": 10,
	})
}

// TestARolloutTellsWhatItWaitsFor, in both kinds of status.
func TestARolloutTellsWhatItWaitsFor(t *testing.T) {
	since := at(10 * time.Minute)
	common := rolloutsv1beta1.CommonStatus{CurrentStepState: rolloutsv1beta1.StepStatePaused, LastUpdateTime: &since}
	one := rolloutsv1beta1.Rollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: rolloutsv1beta1.RolloutSpec{Strategy: rolloutsv1beta1.RolloutStrategy{BlueGreen: &rolloutsv1beta1.BlueGreenStrategy{
			StepsStrategy: rolloutsv1beta1.StepsStrategy{Steps: make([]rolloutsv1beta1.Step, 3)},
		}}},
		Status: rolloutsv1beta1.RolloutStatus{
			Phase: rolloutsv1beta1.RolloutPhaseProgressing, CurrentStepIndex: 2,
			BlueGreenStatus: &rolloutsv1beta1.BlueGreenStatus{CommonStatus: common, UpdatedReplicas: 4},
		},
	}
	other := *one.DeepCopy()
	other.Name, other.Spec.Strategy = "worker", rolloutsv1beta1.RolloutStrategy{Canary: &rolloutsv1beta1.CanaryStrategy{}}
	other.Status.Phase, other.Status.BlueGreenStatus = rolloutsv1beta1.RolloutPhaseHealthy, nil
	other.Status.CanaryStatus = &rolloutsv1beta1.CanaryStatus{CommonStatus: common, CanaryReplicas: 1}
	got := series(t, collectorOf(&cache{rollouts: []rolloutsv1beta1.Rollout{one, other}}, 10, Rollouts()))
	expect(t, got, map[string]float64{
		"kruise_rollout_status_step_state_seconds{namespace=shop,rollout=web}":                        600,
		"kruise_rollout_status_step_state_seconds{namespace=shop,rollout=worker}":                     -1,
		"kruise_rollout_status_replicas_updated{namespace=shop,rollout=web}":                          4,
		"kruise_rollout_status_replicas_updated{namespace=shop,rollout=worker}":                       1,
		"kruise_rollout_spec_steps{namespace=shop,rollout=web}":                                       3,
		"kruise_rollout_info{namespace=shop,rollout=web,style=blueGreen,workload=,workload_kind=}":    1,
		"kruise_rollout_info{namespace=shop,rollout=worker,style=partition,workload=,workload_kind=}": 1,
	})
}

// TestEveryKindServesWhatItDescribes: each of its samples belongs to a metric that it describes, with as many labels.
func TestEveryKindServesWhatItDescribes(t *testing.T) {
	kinds := append(slices.Collect(maps.Values(Apps())), Rollouts())
	for _, k := range kinds {
		list := k.list()
		labels := map[string]int{}
		for _, f := range k.families {
			labels[f.name] = len(f.labels)
		}
		object := newItem(list)
		samples := k.samples(object, now())
		if len(samples) < 5 {
			t.Errorf("a %s has %d samples", k.kind, len(samples))
		}
		for _, s := range samples {
			if want, ok := labels[s.name]; !ok || want != len(s.labels) {
				t.Errorf("%s of a %s has labels %v, want %d of them", s.name, k.kind, s.labels, want)
			}
		}
		if most := len(k.families) + 12; most > 30 { // states of Pods and conditions have several series
			t.Errorf("a %s has up to %d series", k.kind, most)
		}
		if err := prometheus.NewPedanticRegistry().Register(New(Options{Reader: &cache{}, Leads: leading(), Now: now}, k)); err != nil {
			t.Errorf("%s: %v", k.kind, err)
		}
	}
}

// newItem returns an empty object of the kind of a list.
func newItem(list client.ObjectList) client.Object {
	item := reflect.ValueOf(list).Elem().FieldByName("Items").Type().Elem()
	return reflect.New(item).Interface().(client.Object)
}
