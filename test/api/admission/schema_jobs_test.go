package admission

import "strings"

func jobSchema() map[string]schemaCase {
	broadcast := func(spec, want string) schemaCase {
		return schemaCase{kind: "BroadcastJob", spec: "{template: {}, " + spec + "}", want: want}
	}
	cron := func(spec, want string) schemaCase {
		return schemaCase{kind: "AdvancedCronJob", spec: "{schedule: '@daily', template: {imageListPullJobTemplate: {spec: {images: [a]}}}, " + spec + "}", want: want}
	}
	ephemeral := func(spec, want string) schemaCase {
		return schemaCase{kind: "EphemeralJob", spec: "{selector: {matchLabels: {a: b}}, template: {ephemeralContainers: []}, " + spec + "}", want: want}
	}
	named := func(kind, name, spec, want string) schemaCase {
		return schemaCase{kind: kind, name: name, spec: spec, want: want}
	}
	long := strings.Repeat("n", 50) // and "new"
	return map[string]schemaCase{
		"parallelism of text":     broadcast("parallelism: many", "spec.parallelism: Invalid value"),
		"a share of the nodes":    broadcast("parallelism: 20%", ""),
		"an unknown completion":   broadcast("completionPolicy: {type: Soon}", `spec.completionPolicy.type: Unsupported value: "Soon": supported values: "Always", "Never"`),
		"a deadline of Never":     broadcast("completionPolicy: {type: Never, activeDeadlineSeconds: 5}", "spec.completionPolicy.activeDeadlineSeconds: Invalid value: activeDeadlineSeconds can only work with Always CompletionPolicyType"),
		"a time to live of Never": broadcast("completionPolicy: {type: Never, ttlSecondsAfterFinished: 5}", "spec.completionPolicy.ttlSecondsAfterFinished: Invalid value: ttlSecondsAfterFinished can only work with Always CompletionPolicyType"),
		"a deadline in the past":  broadcast("completionPolicy: {activeDeadlineSeconds: -1}", "spec.completionPolicy.activeDeadlineSeconds: Invalid value: -1"),
		"a life that is negative": broadcast("completionPolicy: {ttlSecondsAfterFinished: -1}", "spec.completionPolicy.ttlSecondsAfterFinished: Invalid value: -1"),
		"an unknown policy":       broadcast("failurePolicy: {type: Ignore}", `spec.failurePolicy.type: Unsupported value: "Ignore"`),
		"a negative limit":        broadcast("failurePolicy: {restartLimit: -1}", "spec.failurePolicy.restartLimit: Invalid value: -1"),
		"a name with a dot":       named("BroadcastJob", "b.c", "{template: {}}", "metadata.name must be no more than 63"),
		"a name of 53 characters": named("BroadcastJob", long, "{template: {}}", ""),
		"no schedule":             {kind: "AdvancedCronJob", spec: "{schedule: '', template: {}}", want: "spec.schedule: Invalid value"},
		"a good schedule":         cron("concurrencyPolicy: Forbid", ""),
		"an unknown concurrency":  cron("concurrencyPolicy: Queue", `spec.concurrencyPolicy: Unsupported value: "Queue"`),
		"pulls beside each other": cron("concurrencyPolicy: Allow", "spec.concurrencyPolicy: Invalid value: must be Forbid or Replace"),
		"a negative history":      cron("failedJobsHistoryLimit: -1", "spec.failedJobsHistoryLimit: Invalid value: -1"),
		"a negative history, too": cron("successfulJobsHistoryLimit: -1", "spec.successfulJobsHistoryLimit: Invalid value: -1"),
		"a start before its time": cron("startingDeadlineSeconds: -1", "spec.startingDeadlineSeconds: Invalid value: -1"),
		"a name that is too long": named("AdvancedCronJob", long, "{schedule: '@daily', template: {}}", "metadata.name must be no more than 52"),
		"a good job":              ephemeral("replicas: 1", ""),
		"every Pod":               {kind: "EphemeralJob", spec: "{selector: {}, template: {ephemeralContainers: []}}", want: "spec.selector: Required value: name the labels of the Pods"},
		"fewer than no Pods":      ephemeral("replicas: -1", "spec.replicas: Invalid value: -1"),
		"fewer than none at once": ephemeral("parallelism: -1", "spec.parallelism: Invalid value: -1"),
		"a deadline before now":   ephemeral("activeDeadlineSeconds: -1", "spec.activeDeadlineSeconds: Invalid value: -1"),
		"a time to live":          ephemeral("ttlSecondsAfterFinished: -1", "spec.ttlSecondsAfterFinished: Invalid value: -1"),
	}
}

func jobRatchets() []ratchetCase {
	return []ratchetCase{
		{
			schemaCase: schemaCase{kind: "BroadcastJob", name: "a.b", spec: "{template: {}, failurePolicy: {restartLimit: -1}, completionPolicy: {activeDeadlineSeconds: -1}}", want: "spec.failurePolicy.restartLimit"},
			change:     "spec: {paused: true}", worse: "spec: {failurePolicy: {restartLimit: -2}}",
		},
		{
			schemaCase: schemaCase{kind: "AdvancedCronJob", name: strings.Repeat("n", 53), spec: "{schedule: '', failedJobsHistoryLimit: -1, template: {}}", want: "spec.failedJobsHistoryLimit"},
			change:     "spec: {paused: true}", worse: "spec: {failedJobsHistoryLimit: -2}",
		},
		{
			schemaCase: schemaCase{kind: "EphemeralJob", spec: "{selector: {}, replicas: -1, template: {ephemeralContainers: []}}", want: "spec.replicas"},
			change:     "spec: {paused: true}", worse: "spec: {parallelism: -1}",
		},
	}
}
