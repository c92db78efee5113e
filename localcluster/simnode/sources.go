package simnode

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// sources are the ConfigMaps and Secrets that containers take their environment from. A kubelet does not start a
// container while one that it names, or a key of it, is missing; launch priorities are built on that.
type sources struct{ configMaps, secrets cache.SharedIndexInformer }

func newSources(factory informers.SharedInformerFactory) sources {
	return sources{
		configMaps: factory.Core().V1().ConfigMaps().Informer(),
		secrets:    factory.Core().V1().Secrets().Informer(),
	}
}

func (s sources) informers() []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{s.configMaps, s.secrets}
}

// missing says, in a kubelet's words, what a container's environment refers to that does not exist; "" if nothing.
func (s sources) missing(pod *corev1.Pod, container *corev1.Container) string {
	for _, from := range container.EnvFrom {
		if ref := from.ConfigMapRef; ref != nil && !isTrue(ref.Optional) && s.configMap(pod.Namespace, ref.Name) == nil {
			return fmt.Sprintf("configmap %q not found", ref.Name)
		}
		if ref := from.SecretRef; ref != nil && !isTrue(ref.Optional) && s.secret(pod.Namespace, ref.Name) == nil {
			return fmt.Sprintf("secret %q not found", ref.Name)
		}
	}
	for i := range container.Env {
		from := container.Env[i].ValueFrom
		if from == nil {
			continue
		}
		if what := s.missingKey(pod, from); what != "" {
			return what
		}
	}
	return ""
}

func (s sources) missingKey(pod *corev1.Pod, from *corev1.EnvVarSource) string {
	if ref := from.ConfigMapKeyRef; ref != nil && !isTrue(ref.Optional) {
		object := s.configMap(pod.Namespace, ref.Name)
		if object == nil {
			return fmt.Sprintf("configmap %q not found", ref.Name)
		}
		if _, ok := object.Data[ref.Key]; !ok {
			return fmt.Sprintf("couldn't find key %v in ConfigMap %v/%v", ref.Key, pod.Namespace, ref.Name)
		}
	}
	if ref := from.SecretKeyRef; ref != nil && !isTrue(ref.Optional) {
		object := s.secret(pod.Namespace, ref.Name)
		if object == nil {
			return fmt.Sprintf("secret %q not found", ref.Name)
		}
		if _, ok := object.Data[ref.Key]; !ok {
			return fmt.Sprintf("couldn't find key %v in Secret %v/%v", ref.Key, pod.Namespace, ref.Name)
		}
	}
	return ""
}

func (s sources) configMap(namespace, name string) *corev1.ConfigMap {
	if object, found, err := s.configMaps.GetStore().GetByKey(namespace + "/" + name); err == nil && found {
		return object.(*corev1.ConfigMap)
	}
	return nil
}

func (s sources) secret(namespace, name string) *corev1.Secret {
	if object, found, err := s.secrets.GetStore().GetByKey(namespace + "/" + name); err == nil && found {
		return object.(*corev1.Secret)
	}
	return nil
}

func isTrue(flag *bool) bool { return flag != nil && *flag }
