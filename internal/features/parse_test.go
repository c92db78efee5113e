package features

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	defaults := []Gate{
		PodWebhook, KruiseDaemon, DaemonWatchingPod, WorkloadSpread, PodUnavailableBudgetDeleteGate, InPlaceUpdateEnvFromMetadata,
		StatefulSetAutoDeletePVC, PodProbeMarkerGate, StatefulSetStartOrdinal, "PodIndexLabel", ResourcesDeletionProtection,
	}
	for name, tc := range map[string]struct {
		from     Sources
		add, off []Gate
	}{
		"nothing asked":            {},
		"one gate on, with spaces": {from: Sources{Flag: " CloneSetShortHash = true , "}, add: []Gate{CloneSetShortHash}},
		"one gate off":             {from: Sources{Flag: "PodIndexLabel=false"}, off: []Gate{"PodIndexLabel"}},
		"pulling ahead brings image pull jobs": {from: Sources{Flag: "PreDownloadImageForInPlaceUpdate=true"},
			add: []Gate{PreDownloadImageForInPlaceUpdate, ImagePullJobGate}},
		"pulling ahead for daemons too": {from: Sources{Flag: "PreDownloadImageForDaemonSetUpdate=1,ImagePullJobGate=false"},
			add: []Gate{PreDownloadImageForDaemonSetUpdate, ImagePullJobGate}},
		"no daemon, nothing that needs one": {
			from: Sources{Flag: "KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true"},
			off:  []Gate{KruiseDaemon, DaemonWatchingPod, InPlaceUpdateEnvFromMetadata, PodProbeMarkerGate},
		},
		"no admission of Pods, nothing that needs it": {
			from: Sources{Flag: "PodWebhook=false,KruisePodReadinessGate=true"},
			off:  []Gate{PodWebhook, WorkloadSpread, PodUnavailableBudgetDeleteGate},
		},
		"a list of kinds without SidecarSet turns the admission of Pods off": {
			from: Sources{CustomResources: "CloneSet,StatefulSet"},
			off:  []Gate{PodWebhook, WorkloadSpread, PodUnavailableBudgetDeleteGate},
		},
		"a list of kinds with SidecarSet changes nothing": {from: Sources{CustomResources: "CloneSet,SidecarSet"}},
		"no deletion protection, none for cascades": {
			from: Sources{Flag: "ResourcesDeletionProtection=false,DeletionProtectionForCRDCascadingGate=true"},
			off:  []Gate{ResourcesDeletionProtection},
		},
		"both deletion protections": {
			from: Sources{Flag: "ResourcesDeletionProtection=true,DeletionProtectionForCRDCascadingGate=true"},
			add:  []Gate{ResourcesDeletionProtection, DeletionProtectionForCRDCascadingGate},
		},
		"all of a stage, but the one named": {
			from: Sources{Flag: "PodWebhook=true,AllBeta=false"},
			off: []Gate{
				KruiseDaemon, DaemonWatchingPod, WorkloadSpread, PodUnavailableBudgetDeleteGate, InPlaceUpdateEnvFromMetadata,
				StatefulSetAutoDeletePVC, PodProbeMarkerGate, StatefulSetStartOrdinal, "PodIndexLabel", ResourcesDeletionProtection,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(tc.from)
			if err != nil {
				t.Fatal(err)
			}
			want := map[Gate]bool{}
			for _, s := range specs() {
				want[s.gate] = false
			}
			for _, gates := range []struct {
				list []Gate
				on   bool
			}{{defaults, true}, {tc.add, true}, {tc.off, false}} {
				for _, gate := range gates.list {
					want[gate] = gates.on
				}
			}
			if diff := cmp.Diff(want, got.on); diff != "" {
				t.Errorf("gates (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for flag, want := range map[string]string{
		"CloneSetShortHas=true":   `unknown feature gate "CloneSetShortHas", known are AllAlpha, AllBeta, CloneSet`,
		"CloneSetShortHash":       `feature gate "CloneSetShortHash" has no value, write CloneSetShortHash=true`,
		"CloneSetShortHash=maybe": "feature gate CloneSetShortHash=maybe: the value is neither true nor false",
	} {
		t.Run(flag, func(t *testing.T) {
			_, err := Parse(Sources{Flag: flag})
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("error is %v, want one that begins with %q", err, want)
			}
		})
	}
}

func TestEveryForcedGateIsKnown(t *testing.T) {
	known := map[Gate]bool{}
	for _, s := range specs() {
		if known[s.gate] {
			t.Errorf("%s is listed twice", s.gate)
		}
		known[s.gate] = true
	}
	for base, dependents := range needs() {
		for _, gate := range append([]Gate{base}, dependents...) {
			if !known[gate] {
				t.Errorf("%s is not in the table of gates", gate)
			}
		}
	}
}
