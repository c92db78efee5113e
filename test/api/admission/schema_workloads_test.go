package admission

import (
	"fmt"
	"strings"
)

const minimal = `
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: nginx}]}}
`

// workload is the minimal object of a kind.
func workload(kind string) string {
	return "apiVersion: apps.kruise.io/v1beta1\nkind: " + kind + `
metadata: {namespace: default}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: app, image: "nginx:1"}]}}
`
}

func newImage() edits {
	return edits{"spec.template.spec.containers": `[{name: app, image: "nginx:2"}]`}
}

// many is a list of n texts, as YAML.
func many(n int) string { return manyOf(n, "a%d") }

func manyOf(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(item, i)
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func otherSelector(kind string) update {
	return update{new: edits{"spec.selector.matchLabels.app": "api"},
		want: "spec.selector: Forbidden: is immutable: delete the " + kind + " with --cascade=orphan and create it anew to select other Pods"}
}

func cloneSetSchema() schema {
	const strategy, rolling = "spec.updateStrategy", "spec.updateStrategy.rollingUpdate"
	const details, order, stuck = rolling + ".inPlaceUpdateStrategy", rolling + ".priorityStrategy", "maxUnavailable and maxSurge should not both be less than 1"
	return schema{
		crd: "apps.kruise.io_clonesets.yaml", object: workload("CloneSet"), harmless: newImage(),
		creates: map[string]create{
			"a minimal set":               {},
			"no spec":                     {set: edits{"spec": "~"}, want: "spec: Required value", unstorable: true},
			"no selector":                 {set: edits{"spec.selector": "~"}, want: "spec.selector: Required value", unstorable: true},
			"an empty selector":           {set: edits{"spec.selector": "{}"}, want: "spec.selector: Invalid value: empty selector is invalid for cloneset"},
			"negative replicas":           {set: edits{"spec.replicas": "-1"}, want: "spec.replicas: Invalid value: -1", unstorable: true},
			"an unknown strategy":         {set: edits{strategy: "{type: Never}"}, want: `spec.updateStrategy.type: Unsupported value: "Never": supported values: "RollingUpdate", "OnDelete"`},
			"an unknown policy":           {set: edits{rolling: "{podUpdatePolicy: Magic}"}, want: `podUpdatePolicy: Unsupported value: "Magic": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`},
			"a deadline too early":        {set: edits{"spec.progressDeadlineSeconds": "5", "spec.minReadySeconds": "5"}, want: "spec.progressDeadlineSeconds: Invalid value: must be greater than minReadySeconds"},
			"a deadline of 0":             {set: edits{"spec.progressDeadlineSeconds": "0"}, want: "spec.progressDeadlineSeconds: Invalid value: must be greater than minReadySeconds"},
			"a negative deadline":         {set: edits{"spec.progressDeadlineSeconds": "-1", "spec.minReadySeconds": "-2"}, want: "spec.progressDeadlineSeconds: Invalid value: -1"},
			"a deadline late enough":      {set: edits{"spec.progressDeadlineSeconds": "6", "spec.minReadySeconds": "5"}},
			"a deadline that never comes": {set: edits{"spec.progressDeadlineSeconds": "2147483647", "spec.minReadySeconds": "2147483647"}},
			"zeros behind the point":      {set: edits{rolling: `{partition: 100.0%}`}, want: rolling + `.partition: Invalid value: "100.0%"`},
			"a zero in front":             {set: edits{rolling: `{partition: 0100%}`}, want: rolling + `.partition: Invalid value: "0100%"`},
			"no percent at all":           {set: edits{rolling: `{maxUnavailable: 0%, maxSurge: 1}`}},
			"too many Pods to delete": {
				set: edits{"spec.scaleStrategy.podsToDelete": many(5002)}, want: "podsToDelete: Invalid value: must have at most 5000 items",
				less: edits{"spec.scaleStrategy.podsToDelete": many(5001)},
			},
			"too many keys of an order": {
				set:  edits{order: "{orderPriority: " + manyOf(101, "{orderedKey: a%d}") + "}"},
				want: order + ".orderPriority: Too many: 101: must have at most 100 items",
			},
			"too many finalizers": {
				set:  edits{"spec.lifecycle": "{preDelete: {finalizersHandler: " + many(65) + "}}"},
				want: "spec.lifecycle.preDelete.finalizersHandler: Too many: 65: must have at most 64 items",
			},
			"older, zeros behind the point": {
				older: true, set: edits{strategy: `{partition: 100.0%}`}, want: strategy + `.partition: Invalid value: "100.0%"`,
			},
			"a scale limit of text":       {set: edits{"spec.scaleStrategy": `{maxUnavailable: "5"}`}, want: `spec.scaleStrategy.maxUnavailable: Invalid value: "5": must be 0 or more, or a percentage such as "20%"`},
			"a number without a percent":  {set: edits{rolling: `{partition: "5"}`}, want: rolling + `.partition: Invalid value: "5": must be 0 or more, or a percentage such as "20%"`},
			"a percentage of text":        {set: edits{rolling: `{maxUnavailable: some}`}, want: rolling + `.maxUnavailable: Invalid value: "some"`},
			"two points":                  {set: edits{rolling: `{maxSurge: 1.5.0%}`}, want: rolling + `.maxSurge: Invalid value: "1.5.0%"`},
			"a negative number":           {set: edits{rolling: `{maxSurge: -5}`}, want: rolling + ".maxSurge: Invalid value: -5"},
			"a fraction of a percent":     {set: edits{rolling: `{partition: 12.5%}`}},
			"nothing can move":            {set: edits{rolling: `{maxUnavailable: 0%, maxSurge: 0}`}, want: rolling + ".maxUnavailable: Invalid value"},
			"nothing can move by default": {set: edits{rolling: `{maxUnavailable: 0%}`}, want: stuck},
			"nothing has to move":         {set: edits{"spec.replicas": "0", rolling: `{maxUnavailable: 0}`}},
			"only surge can move":         {set: edits{rolling: `{maxUnavailable: 0, maxSurge: 1}`}},
			"a fraction can move":         {set: edits{rolling: `{maxUnavailable: 0.1%}`}},
			"nothing moves by itself":     {set: edits{strategy: `{type: OnDelete, rollingUpdate: {maxUnavailable: 0}}`}},
			"surge in place only":         {set: edits{rolling: `{podUpdatePolicy: InPlaceOnly, maxSurge: 10%}`}, want: rolling + ".maxSurge: Invalid value: must be 0 with InPlaceOnly: surge Pods would have to be created and deleted"},
			"no surge in place only":      {set: edits{rolling: `{podUpdatePolicy: InPlaceOnly, maxSurge: 0%}`}},
			"surge with OnDelete":         {set: edits{strategy: `{type: OnDelete, rollingUpdate: {podUpdatePolicy: InPlaceOnly, maxSurge: 1}}`}},
			"negative seconds":            {set: edits{details: `{gracePeriodSeconds: -1}`}, want: details + ".gracePeriodSeconds: Invalid value: -1"},
			"a negative timeout":          {set: edits{details: `{imagePreDownloadTimeoutSeconds: -2}`}, want: details + ".imagePreDownloadTimeoutSeconds: Invalid value: -2"},
			"a negative threshold":        {set: edits{details: `{imagePreDownloadMinUpdatedReadyPods: -3}`}, want: details + ".imagePreDownloadMinUpdatedReadyPods: Invalid value: -3"},
			"parallelism as a percentage": {set: edits{details: `{imagePreDownloadParallelism: 10%}`}, want: `imagePreDownloadParallelism: Invalid value: "10%": must be a number of 0 or more, not a percentage`},
			"parallelism beyond numbers":  {set: edits{details: `{imagePreDownloadParallelism: "3000000000"}`}, want: "imagePreDownloadParallelism: Invalid value"},
			"parallelism as text":         {set: edits{details: `{imagePreDownloadParallelism: "10"}`}},
			"a weight too heavy":          {set: edits{order: `{weightPriority: [{weight: 101, matchSelector: {matchLabels: {a: b}}}]}`}, want: "weightPriority[0].weight: Invalid value: 101"},
			"a negative weight":           {set: edits{order: `{weightPriority: [{weight: -1, matchSelector: {matchLabels: {a: b}}}]}`}, want: "weightPriority[0].weight: Invalid value: -1"},
			"a weight for all":            {set: edits{order: `{weightPriority: [{weight: 1, matchSelector: {}}]}`}, want: order + ".weightPriority[0].matchSelector: Required value: an empty selector matches every Pod: name labels"},
			"two orders":                  {set: edits{order: `{orderPriority: [{orderedKey: a}], weightPriority: [{weight: 1, matchSelector: {matchLabels: {a: b}}}]}`}, want: order + ": Forbidden: orderPriority and weightPriority can't both be set: keep one"},
			"an order by nothing":         {set: edits{order: `{orderPriority: [{orderedKey: ""}]}`}, want: order + `.orderPriority[0].orderedKey: Invalid value: ""`},
			"spread by nothing":           {set: edits{rolling: `{scatterStrategy: [{key: "", value: a}]}`}, want: rolling + `.scatterStrategy[0].key: Invalid value: ""`},
			"spread twice":                {set: edits{rolling: `{scatterStrategy: [{key: a, value: b}, {key: a, value: c}, {key: a, value: b}]}`}, want: rolling + `.scatterStrategy[2]: Duplicate value: {"key":"a","value":"b"}`},
			"older, an unknown type":      {older: true, set: edits{strategy: "{type: Magic}"}, want: `spec.updateStrategy.type: Unsupported value: "Magic": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"`},
			"older, nothing can move":     {older: true, set: edits{strategy: "{maxUnavailable: 0}"}, want: "spec.updateStrategy.maxUnavailable: Invalid value: " + stuck},
			"older, surge in place only":  {older: true, set: edits{strategy: "{type: InPlaceOnly, maxSurge: 1}"}, want: "spec.updateStrategy.maxSurge: Invalid value: must be 0 with InPlaceOnly"},
			"older, a number of text":     {older: true, set: edits{strategy: `{partition: "5"}`}, want: `spec.updateStrategy.partition: Invalid value: "5"`},
			"older, an early deadline":    {older: true, set: edits{"spec.progressDeadlineSeconds": "5", "spec.minReadySeconds": "5"}, want: "spec.progressDeadlineSeconds: Invalid value: must be greater than minReadySeconds"},
			"older, an empty selector":    {older: true, set: edits{"spec.selector": "{}"}, want: "spec.selector: Invalid value: empty selector is invalid for cloneset"},
		},
		updates: map[string]update{
			"another selector":         otherSelector("CloneSet"),
			"replicas that can't move": {old: edits{"spec.replicas": "0", rolling: `{maxUnavailable: 0}`}, new: edits{"spec.replicas": "1"}, want: stuck},
			"nothing can move":         {new: edits{rolling: `{maxUnavailable: 0.0%}`}, want: stuck},
			"a later minReadySeconds":  {old: edits{"spec.progressDeadlineSeconds": "6", "spec.minReadySeconds": "5"}, new: edits{"spec.minReadySeconds": "6"}, want: "must be greater than minReadySeconds"},
		},
	}
}

func statefulSetSchema() schema {
	const strategy, rolling = "spec.updateStrategy", "spec.updateStrategy.rollingUpdate"
	const parallel = "spec.podManagementPolicy"
	const nameRule = "metadata.name must have at most 63 characters and no dots: it is a part of the host names of Pods"
	return schema{
		crd: "apps.kruise.io_statefulsets.yaml", object: workload("StatefulSet"), harmless: newImage(),
		creates: map[string]create{
			"a minimal set":                    {},
			"no spec":                          {set: edits{"spec": "~"}, want: "spec: Required value", unstorable: true},
			"an empty selector":                {set: edits{"spec.selector": "{}"}, want: "spec.selector: Invalid value: empty selector is invalid for statefulset"},
			"a name that is no host":           {set: edits{"metadata.name": "web.example"}, want: nameRule},
			"a name that is too long":          {set: edits{"metadata.name": "a123456789b123456789c123456789d123456789e123456789f123456789g123"}, want: nameRule},
			"a name just short enough":         {set: edits{"metadata.name": "a123456789b123456789c123456789d123456789e123456789f123456789g12"}},
			"a Service that is no name":        {set: edits{"spec.serviceName": "Web"}, want: `spec.serviceName: Invalid value: "Web"`},
			"a Service of dots":                {set: edits{"spec.serviceName": "web.example"}, want: `spec.serviceName: Invalid value: "web.example"`},
			"a Service":                        {set: edits{"spec.serviceName": "web-2"}},
			"no Service, said":                 {set: edits{"spec.serviceName": `""`}},
			"negative replicas":                {set: edits{"spec.replicas": "-1"}, want: "spec.replicas: Invalid value: -1", unstorable: true},
			"more replicas than numbers":       {set: edits{"spec.replicas": "1000001"}, want: "spec.replicas: Invalid value: 1000001"},
			"a negative age":                   {set: edits{"spec.minReadySeconds": "-1"}, want: "spec.minReadySeconds: Invalid value: -1"},
			"a negative history":               {set: edits{"spec.revisionHistoryLimit": "-1"}, want: "spec.revisionHistoryLimit: Invalid value: -1"},
			"a negative start":                 {set: edits{"spec.ordinals": "{start: -1}"}, want: "spec.ordinals.start: Invalid value: -1"},
			"an unknown management":            {set: edits{parallel: "Random"}, want: `spec.podManagementPolicy: Unsupported value: "Random": supported values: "OrderedReady", "Parallel"`},
			"an unknown retention":             {set: edits{"spec.persistentVolumeClaimRetentionPolicy": "{whenScaled: Burn}"}, want: `whenScaled: Unsupported value: "Burn": supported values: "Retain", "Delete"`},
			"an unknown claim update":          {set: edits{"spec.volumeClaimUpdateStrategy": "{type: Now}"}, want: `spec.volumeClaimUpdateStrategy.type: Unsupported value: "Now": supported values: "OnDelete", "OnPodRollingUpdate"`},
			"an early deadline":                {set: edits{"spec.progressDeadlineSeconds": "5", "spec.minReadySeconds": "5"}, want: "spec.progressDeadlineSeconds: Invalid value: must be greater than minReadySeconds"},
			"an early deadline of stages":      {set: edits{"spec.progressDeadlineSeconds": "9", rolling: "{minReadySeconds: 9}"}, want: "spec.progressDeadlineSeconds: Invalid value: must be greater than minReadySeconds"},
			"a deadline late enough":           {set: edits{"spec.progressDeadlineSeconds": "9", "spec.minReadySeconds": "20", rolling: "{minReadySeconds: 8}"}},
			"a scale limit in order":           {set: edits{"spec.scaleStrategy": "{maxUnavailable: 2}"}, want: "spec.scaleStrategy.maxUnavailable: Invalid value: can only work with Parallel PodManagementPolicyType"},
			"a percentage in order":            {set: edits{"spec.scaleStrategy": "{maxUnavailable: 10%}"}, want: "can only work with Parallel PodManagementPolicyType"},
			"the one limit in order":           {set: edits{"spec.scaleStrategy": "{maxUnavailable: 1}"}},
			"a scale limit":                    {set: edits{parallel: "Parallel", "spec.scaleStrategy": "{maxUnavailable: 10%}"}},
			"a scale limit of none":            {set: edits{parallel: "Parallel", "spec.scaleStrategy": "{maxUnavailable: 0%}"}, want: `spec.scaleStrategy.maxUnavailable: Invalid value: "0%": must be 1 or more, or a percentage above 0% and up to 100%`},
			"an unknown strategy":              {set: edits{strategy: "{type: Never}"}, want: `spec.updateStrategy.type: Unsupported value: "Never": supported values: "RollingUpdate", "OnDelete"`},
			"stages of OnDelete":               {set: edits{strategy: "{type: OnDelete, rollingUpdate: {}}"}, want: "spec.updateStrategy.rollingUpdate: Invalid value: only allowed for updateStrategy 'RollingUpdate'"},
			"a negative partition":             {set: edits{rolling: "{partition: -1}"}, want: rolling + ".partition: Invalid value: -1"},
			"negative seconds of stages":       {set: edits{rolling: "{minReadySeconds: -1}"}, want: rolling + ".minReadySeconds: Invalid value: -1"},
			"too many seconds of stages":       {set: edits{rolling: "{minReadySeconds: 301}"}, want: rolling + ".minReadySeconds: Invalid value: 301"},
			"a limit of none":                  {set: edits{rolling: "{maxUnavailable: 0}"}, want: rolling + ".maxUnavailable: Invalid value: 0: must be 1 or more"},
			"a limit above all":                {set: edits{rolling: "{maxUnavailable: 101%}"}, want: rolling + `.maxUnavailable: Invalid value: "101%"`},
			"a limit of all":                   {set: edits{rolling: "{maxUnavailable: 100%}"}},
			"minReadySeconds as in Kubernetes": {set: edits{"spec.minReadySeconds": "3600"}},
			"a limit of text":                  {set: edits{rolling: "{maxUnavailable: some}"}, want: rolling + `.maxUnavailable: Invalid value: "some"`},
			"an unknown policy":                {set: edits{rolling: "{podUpdatePolicy: Magic}"}, want: `podUpdatePolicy: Unsupported value: "Magic": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`},
			"another order, in order":          {set: edits{rolling: "{unorderedUpdate: {}}"}, want: rolling + ".unorderedUpdate: Required value: unorderedUpdate can only work with Parallel PodManagementPolicyType"},
			"another order":                    {set: edits{parallel: "Parallel", rolling: "{unorderedUpdate: {priorityStrategy: {orderPriority: [{orderedKey: a}]}}}"}},
			"two orders": {set: edits{parallel: "Parallel", rolling: "{unorderedUpdate: {priorityStrategy: {orderPriority: [{orderedKey: a}], weightPriority: [{weight: 1, matchSelector: {matchLabels: {a: b}}}]}}}"},
				want: "orderPriority and weightPriority can't both be set: keep one"},
			"a deadline that never comes": {set: edits{"spec.progressDeadlineSeconds": "2147483647", "spec.minReadySeconds": "2147483647"}},
			"a zero in front":             {set: edits{rolling: "{maxUnavailable: 050%}"}, want: rolling + `.maxUnavailable: Invalid value: "050%"`},
			"too many ordinals": {
				set:  edits{"spec.reserveOrdinals": manyOf(20002, "%d")},
				want: `spec.reserveOrdinals: Invalid value: must have at most 20000 items: reserve ranges such as "3-5"`,
				less: edits{"spec.reserveOrdinals": manyOf(20001, "%d")},
			},
			"negative grace":                {set: edits{rolling: "{inPlaceUpdateStrategy: {gracePeriodSeconds: -1}}"}, want: "gracePeriodSeconds: Invalid value: -1"},
			"older, a name of dots":         {older: true, set: edits{"metadata.name": "web.example"}, want: nameRule},
			"older, a scale limit in order": {older: true, set: edits{"spec.scaleStrategy": "{maxUnavailable: 2}"}, want: "can only work with Parallel"},
		},
		updates: map[string]update{
			"another selector":        otherSelector("StatefulSet"),
			"another Service":         {old: edits{"spec.serviceName": "a"}, new: edits{"spec.serviceName": "b"}, want: "spec.serviceName: Forbidden: is immutable: delete the StatefulSet with --cascade=orphan"},
			"no Service any more":     {old: edits{"spec.serviceName": "a"}, new: edits{"spec.serviceName": "~"}, want: "spec.serviceName: Forbidden: is immutable"},
			"another management":      {new: edits{parallel: "Parallel"}, want: "spec.podManagementPolicy: Forbidden: is immutable: delete the StatefulSet with --cascade=orphan"},
			"the same management":     {new: edits{parallel: "OrderedReady"}},
			"a later minReadySeconds": {old: edits{"spec.progressDeadlineSeconds": "6"}, new: edits{rolling: "{minReadySeconds: 6}"}, want: "must be greater than minReadySeconds"},
		},
	}
}

func daemonSetSchema() schema {
	const strategy, rolling = "spec.updateStrategy", "spec.updateStrategy.rollingUpdate"
	const stuck = rolling + ".maxUnavailable: Required value: cannot be 0 when maxSurge is 0"
	return schema{
		crd: "apps.kruise.io_daemonsets.yaml", object: workload("DaemonSet"), harmless: newImage(),
		creates: map[string]create{
			"a minimal set":           {},
			"no spec":                 {set: edits{"spec": "~"}, want: "spec: Required value", unstorable: true},
			"an empty selector":       {set: edits{"spec.selector": "{}"}, want: "spec.selector: Invalid value: empty selector is invalid for daemonset"},
			"a burst of none":         {set: edits{"spec.burstReplicas": "0%"}, want: `spec.burstReplicas: Invalid value: "0%": must be greater than 0`},
			"a zero in front":         {set: edits{rolling: "{partition: 050%}"}, want: rolling + `.partition: Invalid value: "050%"`},
			"a burst with a zero":     {set: edits{"spec.burstReplicas": "050%"}, want: `spec.burstReplicas: Invalid value: "050%"`},
			"a burst of text":         {set: edits{"spec.burstReplicas": "some"}, want: `spec.burstReplicas: Invalid value: "some": must be greater than 0, or a percentage such as "20%"`},
			"a negative age":          {set: edits{"spec.minReadySeconds": "-1"}, want: "spec.minReadySeconds: Invalid value: -1"},
			"a negative history":      {set: edits{"spec.revisionHistoryLimit": "-1"}, want: "spec.revisionHistoryLimit: Invalid value: -1"},
			"an unknown type":         {set: edits{strategy: "{type: Never}"}, want: `spec.updateStrategy.type: Unsupported value: "Never": supported values: "RollingUpdate", "OnDelete"`},
			"an unknown way":          {set: edits{rolling: "{rollingUpdateType: Surging}"}, want: `rollingUpdateType: Unsupported value: "Surging": supported values: "Standard", "InPlaceIfPossible"`},
			"both limits":             {set: edits{rolling: "{maxUnavailable: 1, maxSurge: 10%}"}, want: rolling + `.maxSurge: Invalid value: may not be set when maxUnavailable is non-zero`},
			"neither limit":           {set: edits{rolling: "{maxUnavailable: 0%, maxSurge: 0}"}, want: stuck},
			"no limit left":           {set: edits{rolling: "{maxUnavailable: 0}"}, want: stuck},
			"no surge":                {set: edits{rolling: "{maxSurge: 0}"}, want: stuck},
			"surge alone":             {set: edits{rolling: "{maxSurge: 1}"}},
			"only a partition":        {set: edits{rolling: "{partition: 3}"}},
			"nothing moves by itself": {set: edits{strategy: "{type: OnDelete, rollingUpdate: {maxUnavailable: 0}}"}},
			"surge in place":          {set: edits{rolling: "{rollingUpdateType: InPlaceIfPossible, maxSurge: 1}"}, want: rolling + ".maxSurge: Invalid value: must be 0 for InPlaceIfPossible type"},
			"a percentage over all":   {set: edits{rolling: "{maxUnavailable: 101%}"}, want: rolling + `.maxUnavailable: Invalid value: "101%": must be 0 or more, or a percentage of up to 100%`},
			"a number over all":       {set: edits{rolling: "{partition: 101}"}},
			"a partition of text":     {set: edits{rolling: `{partition: "5"}`}, want: rolling + `.partition: Invalid value: "5": must be 0 or more, or a percentage of up to 100%`},
			"a canary of all":         {set: edits{rolling: "{selector: {}}"}, want: rolling + ".selector: Invalid value: an empty selector matches every node: leave it out to update all"},
			"negative grace":          {set: edits{rolling: "{inPlaceUpdateStrategy: {gracePeriodSeconds: -1}}"}, want: "gracePeriodSeconds: Invalid value: -1"},
			"older, Surging and more": {older: true, set: edits{rolling: "{rollingUpdateType: Surging, maxUnavailable: 1}"}, want: rolling + ".maxUnavailable: Required value: must be 0 for Surging type"},
			"older, an unknown way":   {older: true, set: edits{rolling: "{rollingUpdateType: Fast}"}, want: `rollingUpdateType: Unsupported value: "Fast": supported values: "Standard", "Surging", "InPlaceIfPossible"`},
			"older, neither limit":    {older: true, set: edits{rolling: "{maxUnavailable: 0, maxSurge: 0}"}, want: stuck},
			"older, both limits":      {older: true, set: edits{rolling: "{maxUnavailable: 1, maxSurge: 1}"}, want: "may not be set when maxUnavailable is non-zero"},
		},
		updates: map[string]update{
			"another selector": otherSelector("DaemonSet"),
			"another image":    {new: newImage()},
		},
	}
}
