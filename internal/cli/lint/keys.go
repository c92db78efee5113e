package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// written is a key that users write.
type written struct {
	// label and annotation say as what it is read.
	label, annotation bool
	// parse says what is wrong with a value.
	parse func(string) error
}

// byUsers returns the keys that users write, with what their values may be.
func byUsers() map[string]written {
	label := func(parse func(string) error) written { return written{label: true, parse: parse} }
	annotation := func(parse func(string) error) written { return written{annotation: true, parse: parse} }
	yes := oneOf("true", "false")
	return map[string]written{
		keys.DeleteProtection:                    label(oneOf(keys.DeleteProtectionAlways, keys.DeleteProtectionCascading)),
		keys.ScaleProtection:                     label(oneOf("Always")),
		keys.SpecifiedDelete:                     label(anything),
		keys.ScalingExcludePreparingDelete:       label(yes),
		keys.WorkloadType:                        label(oneOf("deployment", "cloneset", "statefulset", "daemonset")),
		keys.InPlaceUpdate:                       label(yes),
		keys.AllowSweep:                          label(whole),
		keys.SidecarSetCustomVersion:             label(anything),
		keys.RolloutID:                           {label: true, annotation: true, parse: anything},
		keys.DeleteProtectionUnlock:              annotation(anything),
		keys.DeleteProtectionUnlockUntil:         annotation(instant),
		keys.ContainerLaunchPriority:             annotation(oneOf(keys.ContainerLaunchOrdered)),
		keys.ImagePreDownloadParallelism:         annotation(anything), // a number or a percentage; what it means is told by the webhook
		keys.ImagePreDownloadTimeoutSeconds:      annotation(whole),
		keys.ImagePreDownloadMinUpdatedReadyPods: annotation(anything),
		keys.ProgressiveCreatePod:                annotation(yes),
		keys.TemplateGeneration:                  annotation(whole),
		keys.SidecarSetCanary:                    annotation(yes),
		keys.SidecarSetBase:                      annotation(anything),
		keys.TemplateSwitch:                      annotation(oneOf(keys.TemplateSwitchRecreate)),
		keys.ContinuedWave:                       annotation(waveOf),
		keys.NoProtect:                           annotation(boolean),
		keys.ProtectOperations:                   annotation(anything),
		keys.ProtectTotalReplicas:                annotation(whole),
		keys.IgnoredPodSelector:                  annotation(selector),
		keys.GeneratePodState:                    annotation(yes),
		keys.RequiredTopology:                    annotation(anything),
		keys.PreferredTopology:                   annotation(anything),
		keys.PersistentAnnotations:               annotation(anything),
		keys.IgnorePatchExistingPodsMetadata:     annotation(boolean),
		keys.AbandonClusters:                     annotation(anything),
		keys.RollbackInBatch:                     annotation(yes),
		keys.RollingStyle:                        annotation(oneOf("partition", "canary", "bluegreen")),
		keys.TrafficRoutingName:                  annotation(anything),
	}
}

// byControllers are the other keys: they may be in what was read from a cluster.
func byControllers() []string {
	return []string{
		keys.LifecycleState, keys.LifecycleTimestamp, keys.InstanceID, keys.OwnedByStatefulSet, keys.InPlaceUpdateState,
		keys.InPlaceUpdateGrace,
		keys.RuntimeContainersMeta, keys.ContainerLaunchPriorityCompleted, keys.ContainerLaunchPriorityCurrent, keys.ContainerLaunchBarrier,
		keys.RevisionPreDownloadCreated, keys.RevisionPreDownloadIgnored, keys.RevisionClaimTemplatesHash, keys.RevisionClaimTemplates,
		keys.OnDeletePodUpdatePolicy, keys.ImagePullJobFinalizer, keys.FakeNodeImage, keys.NodeImageSecretModes, keys.PullSecretSource,
		keys.PullSecretReferences, keys.PullSecretMode, keys.PulledBy, keys.BroadcastJobPausedAtFailed, keys.ScheduledAt,
		keys.ImageListPullJobTemplate, keys.SidecarSetHash, keys.SidecarSetHashWithoutImage, keys.SidecarSetInjectedList,
		keys.SidecarSetInPlaceUpdateState, keys.SidecarSetWorkingHotUpgradeContainer, keys.SidecarSetName, keys.SidecarSetLegacyFields,
		keys.PodScopePending, keys.SidecarsTerminated, keys.EphemeralContainersCleanup, keys.SubsetName, keys.SubsetRevision,
		keys.SubsetPatch,
		keys.SubsetApplied, keys.ReservedPod, keys.RelatedBudget, keys.RelatedBudgetOld, keys.DistributedFrom, keys.DistributedHash,
		keys.DistributedKeys, keys.DistributedBy, keys.RecreatePodUID, keys.RecreateNodeName, keys.RecreateActive,
		keys.RecreateUnreadyAcquired,
		keys.RecreateSyncContainerStatuses, keys.ProbeCleanup, keys.PodProbes, keys.PodProbeMarkers, keys.InjectedPodState,
		keys.PreviousPodIPs,
		keys.AdvancedDeployment, keys.DeploymentStrategy, keys.DeploymentExtraStatus, keys.HeldReplicas, keys.TrafficFirst,
		keys.DaemonSetControl,
		keys.DaemonSetOriginalStrategy, keys.DaemonSetRevision, keys.CanaryDeployment, keys.CanaryRevision, keys.CanaryFinalizer,
		keys.InProgressing, keys.ControlInfo, keys.RolloutBatchID, keys.BatchMetadata, keys.NoNeedUpdate, keys.StableRevision,
		keys.OriginalDeploymentStrategy,
		keys.OriginalSpecConfiguration, keys.RolloutName, keys.AnalysisCheck, keys.ResumedRevision, keys.RolloutHub,
		keys.TrafficRoutingFinalizer,
		keys.MatchedWorkloadSpread, keys.SpreadScopePending, keys.SpreadGate, keys.HubID, keys.HubOwnerUID, keys.HubOwner, keys.AppliedHash,
		keys.HubGeneration, keys.MulticlusterCleanup, keys.Migration,
	}
}

// prefixes begin keys that end in a name of the user.
func prefixes() []string {
	return []string{keys.SidecarSetVersionPrefix, keys.SidecarSetVersionAltPrefix, keys.UnavailablePrefix, keys.TrafficRoutingProgressing}
}

func anything(string) error { return nil }

func oneOf(values ...string) func(string) error {
	return func(text string) error {
		if slices.Contains(values, text) {
			return nil
		}
		return fmt.Errorf("use %s", strings.Join(values, " or "))
	}
}

func whole(text string) error {
	if n, err := strconv.ParseInt(text, 10, 32); err != nil || n < 0 {
		return errors.New("use a whole number of 0 or more")
	}
	return nil
}

func boolean(text string) error {
	if _, err := strconv.ParseBool(text); err != nil {
		return errors.New("use true or false")
	}
	return nil
}

func instant(text string) error {
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return errors.New("use a time such as 2030-01-31T12:00:00Z")
	}
	return nil
}

func waveOf(text string) error {
	if revision, wave, slash := strings.Cut(text, "/"); !slash || revision == "" || wave == "" {
		return errors.New("use REVISION/WAVE")
	}
	return nil
}

func selector(text string) error {
	var s metav1.LabelSelector
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return errors.New(`use a label selector as JSON, such as {"matchLabels":{"app":"web"}}`)
	}
	if _, err := metav1.LabelSelectorAsSelector(&s); err != nil {
		return err
	}
	return nil
}

// keys warns of labels and annotations, of the object and of its Pod template, that nobody reads as they are written.
func (c *check) keys() {
	for _, at := range [][]string{{"metadata"}, {"spec", "template", "metadata"}} {
		for _, place := range []string{"labels", "annotations"} {
			path := append(slices.Clone(at), place)
			found, _, err := unstructured.NestedStringMap(c.Object.Object, path...)
			if err != nil {
				continue // a value that is no text is refused, and named, by the API server
			}
			for _, key := range slices.Sorted(maps.Keys(found)) {
				if why := wrongKey(key, found[key], place); why != "" {
					c.warnf(fmt.Sprintf("%s[%s]", strings.Join(path, "."), key), "%s", why)
				}
			}
		}
	}
	containers, _, _ := unstructured.NestedSlice(c.Object.Object, "spec", "template", "spec", "containers")
	for i, container := range containers {
		fields, _ := container.(map[string]any)
		c.variables(fmt.Sprintf("spec.template.spec.containers[%d].env", i), fields)
	}
}

// variables warns of environment variables whose names are nearly those that Kruise reads.
func (c *check) variables(at string, container map[string]any) {
	known := []string{
		keys.ContainerPriorityEnv, keys.TerminateSidecarEnv, keys.TerminateSidecarWithImageEnv, keys.TerminateSidecarIgnoreExitCodeEnv,
		keys.ContainerBarrierEnv, keys.EphemeralJobID,
	}
	env, _, _ := unstructured.NestedSlice(container, "env")
	for i, one := range env {
		fields, _ := one.(map[string]any)
		name, _ := fields["name"].(string)
		value, _ := fields["value"].(string)
		switch near := nearest(name, known); {
		case slices.Contains(known, name):
			if name != keys.ContainerPriorityEnv {
				continue
			}
			if _, err := strconv.ParseInt(value, 10, 32); err != nil {
				c.warnf(fmt.Sprintf("%s[%d].value", at, i), "%q is no priority: use a whole number", value)
			}
		case near != "":
			c.warnf(fmt.Sprintf("%s[%d].name", at, i), "%s is read by nobody: did you mean %s?", name, near)
		}
	}
}

// wrongKey says what is wrong with a label or annotation; nothing if it is one that is read, or none of Kruise.
func wrongKey(key, value, place string) string {
	users := byUsers()
	if w, known := users[key]; known {
		switch {
		case place == "labels" && !w.label:
			return "it is read as an annotation: move it to annotations"
		case place == "annotations" && !w.annotation:
			return "it is read as a label: move it to labels"
		}
		if err := w.parse(value); err != nil {
			return fmt.Sprintf("%q has no effect: %v", value, err)
		}
		return ""
	}
	all := slices.Concat(slices.Collect(maps.Keys(users)), byControllers())
	if slices.Contains(all, key) || slices.ContainsFunc(prefixes(), func(p string) bool { return strings.HasPrefix(key, p) }) {
		return ""
	}
	slices.Sort(all)
	domain, _, _ := strings.Cut(key, "/")
	near := nearest(key, all)
	switch {
	case near != "":
		return fmt.Sprintf("it is read by nobody: did you mean %s?", near)
	case domain == "kruise.io" || strings.HasSuffix(domain, ".kruise.io"):
		return "it is read by no part of Kruise"
	}
	return ""
}

// nearest returns the name that a word differs from by no more than three letters; empty if there is none, or if it is one of the names.
func nearest(word string, names []string) string {
	best, least := "", 4
	for _, name := range names {
		if d := distance(word, name); d < least {
			best, least = name, d
		}
	}
	if least == 0 || len(word) < 8 {
		return ""
	}
	return best
}

// distance returns how many letters have to be put in, taken out or replaced to make one word of another: of "app" and "apex", 2.
func distance(a, b string) int {
	if d := len(a) - len(b); d > 3 || d < -3 {
		return 4
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
