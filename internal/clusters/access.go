package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/seed-69ecc383/kruise/api/keys"
	"github.com/seed-69ecc383/kruise/internal/rules/connection"
)

// Kind is the kind of a cluster object.
type Kind string

const (
	// Profile is a ClusterProfile of SIG Multicluster.
	Profile Kind = "ClusterProfile"
	// Secret is a Secret with a kubeconfig, which is labelled as one.
	Secret Kind = "Secret"
)

// Ref names a cluster object of the hub.
type Ref struct {
	Kind            Kind
	Namespace, Name string
}

// String returns the kind, the namespace and the name.
func (r Ref) String() string { return fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name) }

func (r Ref) key() client.ObjectKey { return client.ObjectKey{Namespace: r.Namespace, Name: r.Name} }

// found is what a cluster object says.
type found struct {
	// labels are the object's own.
	labels map[string]string
	// access is how the cluster is reached, and print tells one way from another; why says why there is no way.
	access *rest.Config
	print  string
	why    *connection.Problem
	// ill says that the object calls its cluster unhealthy.
	ill *connection.Problem
}

func refused(why *connection.Problem) found { return found{why: why} }

// Programs are the programs that make credentials, by the name of the access provider in ClusterProfiles. The administrator of the hub
// configures them.
type Programs map[string]*clientcmdapi.ExecConfig

// ReadPrograms reads the file of --clusterprofile-provider-file: {"providers": [{"name": ..., "execConfig": {...}}]}.
func ReadPrograms(path string) (Programs, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the access providers: %w", err)
	}
	var file struct {
		Providers []struct {
			Name       string                   `json:"name"`
			ExecConfig *clientcmdapi.ExecConfig `json:"execConfig"`
		} `json:"providers"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("reading the access providers in %s: %w", path, err)
	}
	out := Programs{}
	for _, p := range file.Providers {
		if p.Name == "" || p.ExecConfig == nil || p.ExecConfig.Command == "" {
			return nil, fmt.Errorf("reading the access providers in %s: provider %q has no name, or no execConfig with a command",
				path, p.Name)
		}
		out[p.Name] = p.ExecConfig
	}
	return out, nil
}

// hub reads cluster objects.
type hub struct {
	// live reads the hub's API server: the caches of the manager hold no Secrets.
	live     client.Reader
	programs Programs
}

// read returns what a cluster object says. An error means that the hub did not answer.
func (h hub) read(ctx context.Context, ref Ref) (found, error) {
	if ref.Kind == Profile {
		return h.readProfile(ctx, ref)
	}
	secret := &corev1.Secret{}
	if err := h.live.Get(ctx, ref.key(), secret); err != nil {
		return missing(ref, err)
	}
	if secret.Labels[keys.KubeconfigSecret] != "true" {
		return refused(&connection.Problem{
			Reason: connection.NotFound, Message: fmt.Sprintf("%s does not have the label %s=true", ref, keys.KubeconfigSecret),
		}), nil
	}
	return byKubeconfig(secret, keys.KubeconfigKey), nil
}

// missing says what the failure to read a cluster object means.
func missing(ref Ref, err error) (found, error) {
	problem := &connection.Problem{Reason: connection.NotFound, Message: fmt.Sprintf("%s does not exist", ref)}
	switch {
	case apierrors.IsNotFound(err):
	case meta.IsNoMatchError(err):
		problem.Message = "the hub does not serve ClusterProfiles of multicluster.x-k8s.io/v1alpha1"
	case apierrors.IsForbidden(err):
		problem.Reason = connection.Forbidden
		problem.Message = fmt.Sprintf("the manager may not read %s: give its account the Role of config/multicluster there", ref)
	default:
		return found{}, fmt.Errorf("reading %s: %w", ref, err)
	}
	return refused(problem), nil
}

func byKubeconfig(secret *corev1.Secret, key string) found {
	out := found{labels: secret.Labels}
	if out.access, out.why = Kubeconfig(secret.Data[key]); out.why != nil {
		out.why.Message = fmt.Sprintf("Secret %s/%s, key %s: %s", secret.Namespace, secret.Name, key, out.why.Message)
	}
	out.print = fingerprint(secret.Data[key])
	return out
}

// profile is what is read of a ClusterProfile. Its own library would move twenty others of this module for these fields.
type profile struct {
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
		// CredentialProviders is the former name of AccessProviders; of two providers of a name, the one there counts.
		AccessProviders     []accessProvider `json:"accessProviders"`
		CredentialProviders []accessProvider `json:"credentialProviders"`
	} `json:"status"`
}

type accessProvider struct {
	Name    string              `json:"name"`
	Cluster clientcmdv1.Cluster `json:"cluster"`
}

// controlPlaneHealthy is the condition by which a manager of clusters calls one unhealthy.
const controlPlaneHealthy = "ControlPlaneHealthy"

func (h hub) readProfile(ctx context.Context, ref Ref) (found, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"})
	if err := h.live.Get(ctx, ref.key(), object); err != nil {
		return missing(ref, err)
	}
	var read profile
	text, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return refused(invalid("%s cannot be read: %v", ref, err)), nil
	}
	out, err := h.access(ctx, ref, read)
	out.labels = object.GetLabels()
	if c := meta.FindStatusCondition(read.Status.Conditions, controlPlaneHealthy); c != nil && c.Status == metav1.ConditionFalse {
		out.ill = &connection.Problem{
			Reason: connection.Unhealthy, Message: fmt.Sprintf("%s has %s=False: %s", ref, controlPlaneHealthy, c.Message),
		}
	}
	return out, err
}

// access returns how the cluster of a profile is reached: by an access provider for which the administrator has configured a program, or by
// a Secret that is for us.
func (h hub) access(ctx context.Context, ref Ref, read profile) (found, error) {
	for _, provider := range append(read.Status.AccessProviders, read.Status.CredentialProviders...) {
		if program := h.programs[provider.Name]; program != nil {
			return byProgram(program, provider.Cluster), nil
		}
	}
	var list corev1.SecretList
	err := h.live.List(ctx, &list, client.InNamespace(ref.Namespace), client.MatchingLabels{
		keys.InventoryConsumer: keys.ConsumerName, keys.InventoryProfile: ref.Name,
	})
	switch {
	case apierrors.IsForbidden(err):
		return missing(Ref{Secret, ref.Namespace, "of " + ref.Name}, err)
	case err != nil:
		return found{}, fmt.Errorf("listing the Secrets of %s: %w", ref, err)
	case len(list.Items) != 1:
		return refused(invalid("%s has no access provider that --clusterprofile-provider-file configures, and %d Secrets with the labels "+
			"%s=%s and %s=%s, want 1", ref, len(list.Items), keys.InventoryConsumer, keys.ConsumerName, keys.InventoryProfile,
			ref.Name)), nil
	}
	return byKubeconfig(&list.Items[0], keys.InventoryKey), nil
}

// execExtension is the extension of a cluster that is passed to the program that makes credentials for it.
const execExtension = "client.authentication.k8s.io/exec"

// byProgram returns access with the credentials that a program makes. The program is the administrator's; the profile says for which
// cluster, and nothing about the program.
func byProgram(program *clientcmdapi.ExecConfig, at clientcmdv1.Cluster) found {
	cluster := &clientcmdapi.Cluster{
		Server: at.Server, TLSServerName: at.TLSServerName, InsecureSkipTLSVerify: at.InsecureSkipTLSVerify,
		CertificateAuthority: at.CertificateAuthority, CertificateAuthorityData: at.CertificateAuthorityData, ProxyURL: at.ProxyURL,
	}
	if field := refusedCluster(cluster); field != "" {
		return refused(invalid("the access provider has %s, which is not used here", field))
	}
	config, why := server(cluster)
	if why != nil {
		return refused(why)
	}
	config.ExecProvider = program.DeepCopy()
	config.ExecProvider.InteractiveMode = clientcmdapi.NeverExecInteractiveMode
	for _, extension := range at.Extensions {
		if extension.Name == execExtension {
			config.ExecProvider.Config = &runtime.Unknown{Raw: extension.Extension.Raw, ContentType: runtime.ContentTypeJSON}
		}
	}
	return found{access: config, print: fingerprint([]any{at, program})}
}
