// Package facts tells on every Pod of a workload of Kruise what its containers really run with: from which spec the kubelet started each, and with
// which labels and annotations in its environment. Whoever updates Pods in place knows by this when an update has arrived.
//
// A container takes labels and annotations into its environment when it starts. While a Pod is being updated in place, one that runs with others
// than the Pod has now is stopped, and the kubelet starts it anew. At any other time it is left alone: whoever changes a label by hand restarts
// nothing.
//
// What a container was started with never changes, so the runtime is asked once for each, and a node at rest asks and writes nothing.
package facts
