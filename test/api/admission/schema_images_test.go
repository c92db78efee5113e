package admission

func imageSchema() map[string]schemaCase {
	job := func(spec, want string) schemaCase {
		return schemaCase{kind: "ImagePullJob", spec: "{image: a, " + spec + "}", want: want}
	}
	const pull = "pullPolicy: {ttlSecondsAfterFinished: 1}"
	const now = "createdAt: '2026-01-02T03:04:05Z', " + pull
	tags := func(tags, want string) schemaCase {
		return schemaCase{kind: "NodeImage", spec: "{images: {a: {tags: [" + tags + "]}}}", want: want}
	}
	return map[string]schemaCase{
		"a good pull":                    job("parallelism: 5", ""),
		"no image":                       {kind: "ImagePullJob", spec: "{}", want: "spec.image: Required value"},
		"an empty image":                 {kind: "ImagePullJob", spec: "{image: ''}", want: "spec.image: Invalid value"},
		"names and labels":               job("selector: {names: [a], matchLabels: {a: b}}", "can not set both names and labelSelector"),
		"nodes and Pods":                 job("selector: {names: [a]}, podSelector: {matchLabels: {a: b}}", "can not set both selector and podSelector"),
		"parallelism of a share":         job("parallelism: 50%", "parallelism does not support percentage value"),
		"parallelism below zero":         job("parallelism: -1", "parallelism must be non-negative"),
		"a deadline before a timeout":    job("completionPolicy: {activeDeadlineSeconds: 599}", "must be greater than pullPolicy.timeoutSeconds"),
		"a life after no end":            job("completionPolicy: {type: Never, ttlSecondsAfterFinished: 1}", "can only work with Always CompletionPolicyType"),
		"an unknown pull policy":         job("imagePullPolicy: Never", "spec.imagePullPolicy: Unsupported value"),
		"a good list":                    {kind: "ImageListPullJob", spec: "{images: [a, b]}"},
		"no images":                      {kind: "ImageListPullJob", spec: "{images: []}", want: "spec.images: Invalid value"},
		"an image without a name":        {kind: "ImageListPullJob", spec: "{images: ['']}", want: "spec.images[0]: Invalid value"},
		"a good NodeImage":               tags("{tag: a, "+now+"}", ""),
		"a tag twice":                    tags("{tag: a, "+now+"}, {tag: a, "+now+"}", "Duplicate value"),
		"a tag without an end":           tags("{tag: a, createdAt: '2026-01-02T03:04:05Z'}", "ttlSecondsAfterFinished is required"),
		"a tag that was never asked for": tags("{tag: a, "+pull+"}", "createdAt: Required value"),
		"a tag without a name":           tags("{tag: '', "+now+"}", "tag: Invalid value"),
		"a negative version":             tags("{tag: a, version: -1, "+now+"}", "version: Invalid value"),
	}
}

func imageRatchets() []ratchetCase {
	return []ratchetCase{
		{
			schemaCase: schemaCase{kind: "ImagePullJob", spec: "{image: a, parallelism: 50%}", want: "parallelism does not support percentage value"},
			change:     "spec: {image: b}", worse: "spec: {parallelism: 60%}",
		},
		{
			schemaCase: schemaCase{kind: "ImageListPullJob", spec: "{images: [a], parallelism: -1}", want: "parallelism must be non-negative"},
			change:     "spec: {images: [b]}", worse: "spec: {parallelism: -2}",
		},
		{
			schemaCase: schemaCase{kind: "NodeImage", spec: "{images: {a: {tags: [{tag: a}]}}}", want: "ttlSecondsAfterFinished is required"},
			change:     "spec: {images: {b: {}}}", worse: "spec: {images: {b: {tags: [{tag: b}]}}}",
		},
	}
}
