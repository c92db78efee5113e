package simnode

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeImage is the part of a NodeImage that a daemon reads and writes.
type nodeImage struct {
	Spec struct {
		Images map[string]struct {
			Tags []pullTag `json:"tags,omitempty"`
		} `json:"images,omitempty"`
	} `json:"spec,omitempty"`
	Status nodeImageStatus `json:"status,omitempty"`
}

type pullTag struct {
	Tag             string `json:"tag"`
	Version         int64  `json:"version,omitempty"`
	ImagePullPolicy string `json:"imagePullPolicy,omitempty"`
	PullPolicy      struct {
		TimeoutSeconds        *int64 `json:"timeoutSeconds,omitempty"`
		BackoffLimit          *int64 `json:"backoffLimit,omitempty"`
		ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	} `json:"pullPolicy,omitempty"`
}

type nodeImageStatus struct {
	Desired       int32                  `json:"desired"`
	Succeeded     int32                  `json:"succeeded"`
	Failed        int32                  `json:"failed"`
	Pulling       int32                  `json:"pulling"`
	Waiting       int32                  `json:"waiting,omitempty"`
	ImageStatuses map[string]pulledImage `json:"imageStatuses,omitempty"`
	// CredentialsKey is what credentials are encrypted with for the daemon.
	CredentialsKey []byte `json:"credentialsKey,omitempty"`
}

type pulledImage struct {
	Tags []pulledTag `json:"tags,omitempty"`
}

type pulledTag struct {
	Tag            string       `json:"tag"`
	Phase          string       `json:"phase"`
	Progress       int32        `json:"progress,omitempty"`
	StartTime      *metav1.Time `json:"startTime,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	Version        int64        `json:"version,omitempty"`
	ImageID        string       `json:"imageID,omitempty"`
	Message        string       `json:"message,omitempty"`
}

// round is one round of pulling one tag.
type round struct {
	repository, tag string
	version         int64
}

// String is the reference of the image.
func (r round) String() string {
	if strings.Contains(r.tag, ":") { // a digest
		return r.repository + "@" + r.tag
	}
	return r.repository + ":" + r.tag
}

// storage is what a node has and what it is about. Only one worker at a time has it.
type storage struct {
	images map[string]bool // by reference
	begun  map[round]time.Time
}

func newStorage() *storage {
	return &storage{images: map[string]bool{}, begun: map[round]time.Time{}}
}

// answer is the status that the daemon of a node reports at a moment, and when that changes; zero for never. What was reported as ended
// stays so.
func (s *storage) answer(n nodeImage, rules Rules, now time.Time) (nodeImageStatus, time.Time) {
	var out nodeImageStatus
	var next time.Time
	begun := map[round]time.Time{}
	for _, repository := range slices.Sorted(maps.Keys(n.Spec.Images)) {
		var image pulledImage
		for _, tag := range n.Spec.Images[repository].Tags {
			r := round{repository, tag.Tag, tag.Version}
			status := reported(n, r)
			if status.CompletionTime == nil {
				started, known := s.begun[r]
				if !known {
					started = now
				}
				begun[r] = started
				var end time.Time
				if status, end = s.pull(r, tag, span{started, now}, rules); !end.IsZero() && (next.IsZero() || end.Before(next)) {
					next = end
				}
			}
			out.count(status.Phase)
			image.Tags = append(image.Tags, status)
		}
		if len(image.Tags) == 0 {
			continue
		}
		if out.ImageStatuses == nil {
			out.ImageStatuses = map[string]pulledImage{}
		}
		out.ImageStatuses[repository] = image
	}
	s.begun = begun
	return out, next
}

func (n *nodeImageStatus) count(phase string) {
	n.Desired++
	switch phase {
	case "Succeeded":
		n.Succeeded++
	case "Failed":
		n.Failed++
	default:
		n.Pulling++
	}
}

// reported is what the status says of a round; empty when nothing.
func reported(n nodeImage, r round) pulledTag {
	for _, t := range n.Status.ImageStatuses[r.repository].Tags {
		if t.Tag == r.tag && t.Version == r.version {
			return t
		}
	}
	return pulledTag{}
}

type span struct{ started, now time.Time }

// pull is how far a pull has come, and when it ends if it has not.
func (s *storage) pull(r round, tag pullTag, at span, rules Rules) (pulledTag, time.Time) {
	started := metav1.NewTime(at.started.Truncate(time.Second))
	status := pulledTag{Tag: r.tag, Version: r.version, Phase: "Pulling", StartTime: &started}
	reference := r.String()
	if s.images[reference] && tag.ImagePullPolicy != "Always" {
		status.end("Succeeded", at.now)
		status.ImageID = resolve(reference).id
		return status, time.Time{}
	}
	takes, message := duration(r, tag, rules)
	end := at.started.Add(takes)
	switch {
	case end.After(at.now):
		return status, end
	case message != "":
		status.end("Failed", at.now)
		status.Message = message
	default:
		s.images[reference] = true
		status.end("Succeeded", at.now)
		status.ImageID = resolve(reference).id
	}
	return status, time.Time{}
}

func (t *pulledTag) end(phase string, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	t.Phase, t.CompletionTime = phase, &at
	if phase == "Succeeded" {
		t.Progress = 100
	}
}

// duration is how long a pull takes with all its attempts, between which a daemon waits for 1, 2, 4 ... up to 30 seconds, and how it fails;
// empty when it does not.
func duration(r round, tag pullTag, rules Rules) (time.Duration, string) {
	seconds := func(value *int64, otherwise int64) time.Duration {
		if value != nil {
			otherwise = *value
		}
		return time.Duration(otherwise) * time.Second
	}
	attempt, message := rules.Pull, errorOf(r.String())
	timeout := seconds(tag.PullPolicy.TimeoutSeconds, 600)
	if strings.Contains(r.String(), tagHangPull) || attempt > timeout {
		attempt, message = timeout, "context deadline exceeded"
	}
	if message == "" {
		return attempt, ""
	}
	retries := int64(3)
	if limit := tag.PullPolicy.BackoffLimit; limit != nil && *limit >= 0 {
		retries = *limit
	}
	total, wait := attempt, time.Second
	for range retries {
		total += wait + attempt
		wait = min(2*wait, 30*time.Second)
	}
	if deadline := seconds(tag.PullPolicy.ActiveDeadlineSeconds, int64(total/time.Second)+1); total > deadline {
		total = deadline
	}
	return total, message
}
