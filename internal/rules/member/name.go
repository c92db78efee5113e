// Package member holds the rules for workloads that a UnitedDeployment has in other clusters: how they are called and known, which clusters
// are recorded before they are written to, and which workloads are deleted because nobody in the hub knows them any more.
//
// No owner reference leads from one cluster into another: the garbage collector of the other one would look for the owner, not find it, and
// delete the workload. Labels say whose it is.
package member

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/seed-69ecc383/kruise/api/keys"
)

// Identity says whose a workload in another cluster is.
type Identity struct {
	// HubID is the UID of the hub's namespace kube-system.
	HubID string
	// Namespace, Name and UID are those of the UnitedDeployment in the hub. The workload is in the namespace of the same name.
	Namespace, Name string
	UID             types.UID
	// Subset is the name of the subset.
	Subset string
}

// maxName is the longest name of a workload whose Pods, and labels of them, can be named after it.
const maxName = 63

// WorkloadName returns the name of the workload: web-b-5f0e3c1a for subset b of UnitedDeployment web. It is the same whenever it is asked
// for, so that a create whose answer was lost is repeated under the same name, and another one for another hub, UnitedDeployment or subset.
//
// Wire: workloads are found by it.
func (i Identity) WorkloadName() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{i.HubID, i.Namespace, string(i.UID), i.Subset}, "/")))
	suffix := "-" + hex.EncodeToString(sum[:4])
	prefix := i.Name + "-" + i.Subset
	if most := maxName - len(suffix); len(prefix) > most {
		prefix = strings.TrimRight(prefix[:most], "-.")
	}
	return prefix + suffix
}

// Labels returns the labels that say whose a workload and its Pods are.
func (i Identity) Labels() map[string]string {
	return map[string]string{keys.HubID: i.HubID, keys.HubOwnerUID: string(i.UID)}
}

// Owns reports whether an object with these labels belongs to the UnitedDeployment. A name alone says nothing.
func (i Identity) Owns(labels map[string]string) bool {
	for key, value := range i.Labels() {
		if value == "" || labels[key] != value {
			return false
		}
	}
	return true
}

// Labelled returns labels with those of the identity, which win.
func (i Identity) Labelled(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, i.Labels())
	return out
}
