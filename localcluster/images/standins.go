package images

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// StandIns makes images that stand in for well-known ones, under any tag: pause, nginx, a few bare systems, and app,
// which is nobody's: a web server for tests, and log, envoy and idle, sidecars for tests that serve nothing. Each has
// its tag in the file /etc/image-tag, and so each tag has an image ID of its own; the same tag always gives the same
// image.
//
// A tag may ask for misbehaviour, with the words that simulated nodes know too: "fail-pull" cannot be pulled, a server
// tagged "crash" exits with code 1 soon after each start, one tagged "never-ready" runs and answers nobody. A name or
// tag with "no-such" in it does not exist.
type StandIns struct {
	base func() (v1.Layer, error)
}

// NewStandIns makes images from the static busybox at path, which is read when the first image is asked for.
func NewStandIns(busybox string) *StandIns {
	return &StandIns{base: sync.OnceValues(func() (v1.Layer, error) { return baseLayer(busybox) })}
}

// Make builds the stand-in for a name, or fails with ErrUnknown if it is not one of those it stands in for.
func (s *StandIns) Make(name reference.NamedTagged) (v1.Image, error) {
	recipe, known := recipeOf(name.Name(), name.Tag())
	if !known || strings.Contains(name.String(), "no-such") || strings.Contains(name.Tag(), "fail-pull") {
		return nil, fmt.Errorf("finding image %s: %w", name, ErrUnknown)
	}
	base, err := s.base()
	if err != nil {
		return nil, fmt.Errorf("making image %s: %w", name, err)
	}
	own, err := layerOf(append(recipe.entries, entry{path: "etc/image-tag", mode: 0o644, content: []byte(name.Tag() + "\n")}))
	if err != nil {
		return nil, fmt.Errorf("making image %s: %w", name, err)
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		base, own)
	if err != nil {
		return nil, fmt.Errorf("making image %s: %w", name, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("making image %s: %w", name, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Created = v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = recipe.config
	config.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("making image %s: %w", name, err)
	}
	return image, nil
}

// recipe is what a stand-in has besides the base.
type recipe struct {
	config  v1.Config
	entries []entry
}

func recipeOf(name, tag string) (recipe, bool) {
	switch name {
	case "registry.k8s.io/pause":
		return recipe{
			config:  v1.Config{Entrypoint: []string{"/pause"}, User: "65535:65535"},
			entries: []entry{program("pause", pauseScript)},
		}, true
	case "docker.io/library/nginx":
		return recipe{
			config: v1.Config{Entrypoint: []string{"/docker-entrypoint.sh"}, Cmd: []string{"nginx", "-g", "daemon off;"}},
			entries: append(site("usr/share/nginx", "html", tag),
				program("docker-entrypoint.sh", "#!/bin/sh\nexec \"$@\"\n"),
				program("usr/sbin/nginx", "#!/bin/sh\nexec serve /usr/share/nginx/html\n"),
				program("usr/bin/serve", serveScript)),
		}, true
	case "docker.io/library/app":
		return recipe{
			config:  v1.Config{Cmd: []string{"serve", "/srv/www"}},
			entries: append(site("srv", "www", tag), program("usr/bin/serve", serveScript)),
		}, true
	case "docker.io/library/log", "docker.io/library/envoy", "docker.io/library/idle":
		return recipe{config: v1.Config{Cmd: []string{"wait"}}, entries: []entry{program("usr/bin/wait", pauseScript)}}, true
	case "docker.io/library/busybox", "docker.io/library/alpine", "docker.io/library/debian", "docker.io/library/ubuntu",
		"docker.io/library/centos":
		return recipe{config: v1.Config{Cmd: []string{"sh"}}}, true
	}
	return recipe{}, false
}

func program(path, script string) entry {
	return entry{path: path, mode: 0o755, content: []byte(script)}
}

// site is a web site that tells its image's tag at "/", and is well at "/healthz" until somebody removes that file.
func site(parent, name, tag string) []entry {
	root := parent + "/" + name
	return []entry{
		folder(parent, 0o755), folder(root, 0o755),
		{path: root + "/index.html", mode: 0o644, content: []byte(tag + "\n")},
		{path: root + "/healthz", mode: 0o644, content: []byte("ok\n")},
	}
}

// The first process of a container gets no signal that it has no handler for, so a script that is one must handle TERM,
// or every Pod would take its whole grace period to end.
const (
	// pauseScript holds a Pod's sandbox. The shell reaps what its children leave behind.
	pauseScript = `#!/bin/sh
trap 'exit 0' TERM INT
while :; do
	sleep 2147483647 &
	wait $! || sleep 1 # rests also where no child can start
done
`
	// serveScript serves the folder $1 at port 80, or $PORT.
	serveScript = `#!/bin/sh
trap 'kill $server 2>/dev/null; exit 0' TERM INT QUIT
tag=$(cat /etc/image-tag)
case $tag in
*crash*)
	echo "crashing, as tag $tag says"
	sleep 0.1
	exit 1
	;;
*never-ready*)
	echo "serving nothing, as tag $tag says"
	sleep 2147483647 &
	;;
*)
	echo "serving $1 of tag $tag at port ${PORT:-80}"
	httpd -f -v -p "${PORT:-80}" -h "$1" &
	;;
esac
server=$!
wait $server
`
)
