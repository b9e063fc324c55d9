package lightapi

import (
	"net/http"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	machineconfigv1 "github.com/openshift/api/machineconfiguration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// VersionInfo returns the answer to a request for /version.
func VersionInfo(kubernetes string) version.Info {
	parts := strings.SplitN(strings.TrimPrefix(kubernetes, "v"), ".", 3)
	info := version.Info{GitVersion: kubernetes}
	if len(parts) == 3 {
		info.Major, info.Minor = parts[0], parts[1]
	}
	return info
}

// kind is a served kind. status is set if its status is a subresource.
type kind struct {
	schema.GroupVersionKind

	namespaced, status bool
	// subresources are further subresources.
	subresources []string
}

// kinds are the kinds of a workload cluster that hosts, Cluster API, CAPM3, assisted-service and our managers
// use.
var kinds = byResource(
	kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"), status: true},
	kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node"), status: true},
	kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), namespaced: true},
	kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), namespaced: true},
	kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), namespaced: true, subresources: []string{tokenSubresource}},
	kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), namespaced: true, status: true},
	// needed for the deletion of a single Machine
	kind{GroupVersionKind: storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), status: true},
	kind{GroupVersionKind: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")},
	kind{GroupVersionKind: certificatesv1.SchemeGroupVersion.WithKind(requestKind), status: true, subresources: []string{"approval"}},
	kind{GroupVersionKind: configv1.GroupVersion.WithKind("ClusterVersion"), status: true},
	kind{GroupVersionKind: configv1.GroupVersion.WithKind("ClusterOperator"), status: true},
	kind{GroupVersionKind: configv1.GroupVersion.WithKind("Infrastructure"), status: true},
	kind{GroupVersionKind: machineconfigv1.GroupVersion.WithKind("MachineConfigPool"), status: true},
)

const (
	tokenSubresource = "token"
	requestKind      = "CertificateSigningRequest"
)

func byResource(list ...kind) map[schema.GroupVersionResource]*kind {
	found := map[schema.GroupVersionResource]*kind{}
	for _, k := range list {
		found[k.resource()] = &k
	}
	return found
}

func (k *kind) resource() schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(k.GroupVersionKind)
	return plural
}

// scheme and codecs contain the kinds.
var (
	scheme = newScheme()
	codecs = serializer.NewCodecFactory(scheme)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(configv1.Install(s))
	utilruntime.Must(machineconfigv1.Install(s))
	utilruntime.Must(metav1.AddMetaToScheme(s))
	return s
}

// discover serves discovery requests.
func discover(w http.ResponseWriter, path, kubernetes string) {
	answer := any(map[string][]string{"paths": {}})
	group, isGroup := strings.CutPrefix(path, "/apis/")
	switch {
	case path == "/version":
		answer = VersionInfo(kubernetes)
	case path == "/api":
		answer = &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case path == "/apis":
		answer = groups()
	case path == "/api/v1":
		answer = resources(corev1.SchemeGroupVersion)
	case isGroup:
		gv, err := schema.ParseGroupVersion(group)
		list := resources(gv)
		if err != nil || len(list.APIResources) == 0 {
			http.Error(w, "404 page not found", http.StatusNotFound)
			return
		}
		answer = list
	}
	responsewriters.WriteRawJSON(http.StatusOK, answer, w)
}

func groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	seen := map[string]bool{"": true} // the core group is in /api
	for resource := range kinds {
		if seen[resource.Group] {
			continue
		}
		seen[resource.Group] = true
		v := metav1.GroupVersionForDiscovery{GroupVersion: resource.GroupVersion().String(), Version: resource.Version}
		list.Groups = append(list.Groups,
			metav1.APIGroup{Name: resource.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return list
}

func resources(gv schema.GroupVersion) *metav1.APIResourceList {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for resource, k := range kinds {
		if resource.GroupVersion() != gv {
			continue
		}
		add := func(name string, verbs ...string) {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: k.Kind, Namespaced: k.namespaced, Verbs: verbs})
		}
		add(resource.Resource, "create", "delete", "get", "list", "patch", "update", "watch")
		if k.status {
			add(resource.Resource+"/status", "get", "patch", "update")
		}
		for _, name := range k.subresources {
			add(resource.Resource+"/"+name, "create", "update")
		}
	}
	return list
}
