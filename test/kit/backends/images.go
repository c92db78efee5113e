package backends

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/seed-69ecc383/kruise/test/kit/cluster"
)

// LoadImages makes images of a back end, of which each answers its tag, and lets the real nodes of a cluster pull them. The stand-in of
// that name starts a process for each request, which takes what a busy machine does not have.
func LoadImages(ctx context.Context, c *cluster.Cluster, dir, name string, tags ...string) error {
	root, err := cluster.Root()
	if err != nil {
		return err
	}
	args := []string{"load-image"}
	for _, tag := range tags {
		binary, archive := filepath.Join(dir, "backend-"+tag), filepath.Join(dir, name+"-"+tag+".tar")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.revision="+tag, "-o", binary,
			"./test/kit/backends/backend")
		build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
		pack := exec.CommandContext(ctx, "go", "run", "./image", "-binary", binary, "-entry", "/backend", "-tag", name+":"+tag,
			"-arch", runtime.GOARCH, "-out", archive)
		pack.Dir = filepath.Join(root, "tools")
		for _, step := range []*exec.Cmd{build, pack} {
			if out, err := step.CombinedOutput(); err != nil {
				return fmt.Errorf("making image %s:%s: %w\n%s", name, tag, err, out)
			}
		}
		args = append(args, archive)
	}
	_, err = c.Local(ctx, args...)
	return err
}
