package cri

import (
	"context"
	"fmt"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Credentials open a registry. Those that are empty are not used.
type Credentials struct {
	Username, Password string
	// Auth is user:password in base 64; IdentityToken and RegistryToken are what some registries give instead.
	Auth, IdentityToken, RegistryToken string
}

// Pull is one image to pull.
type Pull struct {
	// Image is the full reference, by tag or by digest.
	Image string
	// Credentials open the registry; nil asks it anonymously.
	Credentials *Credentials
	// Labels and Annotations are those of the sandbox that the runtime is told to pull for.
	Labels, Annotations map[string]string
}

// ImageID returns what the runtime calls an image; empty when the node does not have it.
func (r *Runtime) ImageID(ctx context.Context, image string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: imageSpec(image)})
	if err != nil {
		return "", fmt.Errorf("asking for image %s: %w", image, err)
	}
	return answer.Image.GetId(), nil
}

// PullImage pulls an image, and returns when it is there, or the context has ended: which also ends the pull.
func (r *Runtime) PullImage(ctx context.Context, p Pull) error {
	request := &runtimeapi.PullImageRequest{
		Image:         imageSpec(p.Image),
		SandboxConfig: &runtimeapi.PodSandboxConfig{Labels: p.Labels, Annotations: p.Annotations},
	}
	if c := p.Credentials; c != nil {
		request.Auth = &runtimeapi.AuthConfig{
			Username: c.Username, Password: c.Password, Auth: c.Auth, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
		}
	}
	if _, err := r.images.PullImage(ctx, request); err != nil {
		return fmt.Errorf("pulling %s: %w", p.Image, err)
	}
	return nil
}

func imageSpec(image string) *runtimeapi.ImageSpec {
	return &runtimeapi.ImageSpec{Image: image, UserSpecifiedImage: image}
}
