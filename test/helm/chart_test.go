package helm

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	registryserver "github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cluster-api/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

func TestChart(t *testing.T) {
	w := newWorld(t)
	for _, part := range []struct {
		name string
		do   func(*world)
	}{
		{"Helm finds nothing to blame", (*world).lint},
		{"by default it installs what clusterctl does", (*world).compareDefaults},
		{"with a watched namespace it installs the components for one", (*world).compareNamespaced},
		{"for an OpenShift hub it installs the rights on Secrets too", (*world).compareOpenShiftHub},
		{"with updates in place it installs the extension too", (*world).compareExtension},
		{"with podMonitor and networkPolicy it installs the objects of the released manifests too", (*world).compareManifests},
		{"it has the README with its values", (*world).showReadme},
		{"each value reaches its place", (*world).followValues},
		{"volumes of the user follow those of the authorities", (*world).combineVolumes},
		{"a disruption budget selects the Pods of its manager", (*world).limitDisruptions},
		{"the notes warn about settings for several replicas", (*world).warnAboutReplicas},
		{"what is not wanted is left out", (*world).leaveOut},
		{"a misspelt value is refused", (*world).misspell},
		{"it goes through a registry", (*world).push},
	} {
		t.Run(part.name, func(t *testing.T) {
			inner := *w
			inner.T = t
			part.do(&inner)
		})
	}
}

func (w *world) lint() {
	out, err := w.helm("lint", "--strict", w.chart)
	NewWithT(w).Expect(err).NotTo(HaveOccurred(), out)
}

// providers are the folders of the providers in a release, with their components and namespaces.
var providers = map[string]struct{ components, namespace string }{
	"bootstrap-openshift-agent":     {"bootstrap-components", "openshift-agent-bootstrap-system"},
	"control-plane-openshift-agent": {"control-plane-components", "openshift-agent-control-plane-system"},
}

func (w *world) compareDefaults() {
	given := w.template(nil)
	w.compare(given, w.components("", nil))
	for i := range given {
		if given[i].GetKind() == "CustomResourceDefinition" {
			g := NewWithT(w)
			g.Expect(given[i].GetAnnotations()).To(HaveKeyWithValue("helm.sh/resource-policy", "keep"), "Helm leaves it")
			g.Expect(given[i].GetLabels()).To(HaveKey("clusterctl.cluster.x-k8s.io"), "clusterctl moves its objects")
		}
	}
}

func (w *world) compareNamespaced() {
	w.compare(w.template(at("watchNamespace", "lab")), w.components("-namespaced", strings.NewReplacer("${WATCHED_NAMESPACE}", "lab")))
}

func (w *world) compareOpenShiftHub() {
	for namespace, suffix := range map[string]string{"": "", "lab": "-namespaced"} {
		variables := strings.NewReplacer("${WATCHED_NAMESPACE}", namespace)
		wanted := w.components(suffix, variables)
		for folder := range providers {
			wanted = append(wanted, w.read(folder, "openshift-hub"+suffix+".yaml", variables)...)
		}
		w.compare(w.template(map[string]any{"openshiftHub": true, "watchNamespace": namespace}), wanted)
		w.compare(w.template(at("watchNamespace", namespace), "--api-versions", "config.openshift.io/v1"), wanted)
		w.compare(w.template(map[string]any{"openshiftHub": nil, "watchNamespace": namespace}, "--api-versions", "config.openshift.io/v1"),
			wanted)
		w.compare(w.template(map[string]any{"openshiftHub": false, "watchNamespace": namespace}, "--api-versions", "config.openshift.io/v1"),
			w.components(suffix, variables))
	}
}

func (w *world) compareExtension() {
	values := at("controlPlane.inPlaceUpdates", map[string]any{"enabled": true, "namespaces": []any{"lab", "shop"}})
	wanted := w.components("", strings.NewReplacer("${EXP_IN_PLACE_UPDATES:=false}", "true"))
	extension := w.read("control-plane-openshift-agent", "in-place-updates.yaml",
		strings.NewReplacer("- ${WATCHED_NAMESPACE}", "- lab\n      - shop"))
	NewWithT(w).Expect(extension).To(HaveLen(4))
	w.compare(w.template(values), append(wanted, extension...))
}

// manifests are the released files with the objects of values that are off by default.
var manifests = []struct {
	values map[string]any
	file   string
	kinds  []string
}{
	{at("podMonitor.enabled", true), "monitoring.yaml", []string{"ServiceAccount", "Secret", "ClusterRoleBinding", "PodMonitor"}},
	{at("networkPolicy.enabled", true), "monitoring.yaml", []string{"NetworkPolicy"}},
	{at("networkPolicy.egress.enabled", true), "egress.yaml", []string{"NetworkPolicy"}},
}

func (w *world) compareManifests() {
	g := NewWithT(w)
	for _, m := range manifests {
		content, err := os.ReadFile(filepath.Join(w.release, m.file))
		g.Expect(err).NotTo(HaveOccurred())
		text := string(content)
		for _, provider := range providers {
			text = strings.ReplaceAll(text, provider.namespace, namespace)
		}
		objects, err := yaml.ToUnstructured([]byte(text))
		g.Expect(err).NotTo(HaveOccurred())
		objects = slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool { return !slices.Contains(m.kinds, o.GetKind()) })
		g.Expect(objects).To(HaveLen(2*len(m.kinds)), "one object of each kind for each provider")
		w.compare(w.template(m.values), append(w.components("", nil), objects...))

		m.values["bootstrap"] = map[string]any{"enabled": false}
		for _, o := range w.template(m.values) {
			g.Expect(o.GetName()).NotTo(ContainSubstring("bootstrap"), "%s of a provider that is not installed", o.GetKind())
		}
	}
	monitor := map[string]any{"enabled": true, "labels": map[string]any{"release": "hub"}}
	labeled := byName(w.T, w.template(at("podMonitor", monitor)))
	for _, name := range []string{"bootstrap-manager", "control-plane-manager"} {
		g.Expect(labeled["PodMonitor "+namespace+"/"+name]).To(HaveKeyWithValue("metadata",
			HaveKeyWithValue("labels", HaveKeyWithValue("release", "hub"))))
	}
}

func (w *world) showReadme() {
	g := NewWithT(w)
	out, err := w.helm("show", "readme", w.chart)
	g.Expect(err).NotTo(HaveOccurred(), out)
	g.Expect(out).To(And(HavePrefix("# Helm chart"), ContainSubstring("| `controlPlane.replicas` | integer | `1` |")))
}

// combineVolumes sets the user's volumes together with the authorities, which are volumes too.
func (w *world) combineVolumes() {
	g := NewWithT(w)
	values := map[string]any{"trustedAuthorities": map[string]any{"configMap": "hub-authorities"}}
	for _, section := range []string{"bootstrap", "controlPlane"} {
		values[section] = map[string]any{
			"volumes": []any{map[string]any{"name": "cache", "emptyDir": map[string]any{}}}, "volumeMounts": places["volumeMounts"].value,
		}
	}
	for section, d := range deployments(w.T, w.template(values)) {
		g.Expect(authorities(d)).To(ConsistOf("configMap hub-authorities", trustDirectory, trustVariable), section)
		g.Expect(d.Spec.Template.Spec.Volumes).To(ContainElements(HaveField("Name", "trusted-authorities"), HaveField("Name", "cache")), section)
		g.Expect(container(d).VolumeMounts).To(ContainElement(HaveField("Name", "cache")), section)
	}
}

func (w *world) limitDisruptions() {
	g := NewWithT(w)
	for section, name := range map[string]string{"bootstrap": "bootstrap", "controlPlane": "control-plane"} {
		for value, wanted := range map[string]policyv1.PodDisruptionBudgetSpec{
			`{"maxUnavailable": 1}`:   {MaxUnavailable: ptr.To(intstr.FromInt32(1))},
			`{"maxUnavailable": 0}`:   {MaxUnavailable: ptr.To(intstr.FromInt32(0))},
			`{"minAvailable": "50%"}`: {MinAvailable: ptr.To(intstr.FromString("50%"))},
			`{"minAvailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow"}`: {
				MinAvailable: ptr.To(intstr.FromInt32(1)), UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
			},
		} {
			var budget map[string]any
			g.Expect(sigsyaml.Unmarshal([]byte(value), &budget)).To(Succeed())
			objects := w.template(at(section+".podDisruptionBudget", budget))
			found := byName(w.T, objects)["PodDisruptionBudget "+namespace+"/openshift-agent-"+name+"-controller-manager"]
			got := policyv1.PodDisruptionBudget{}
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(found, &got, true)).To(Succeed())
			wanted.Selector = deployments(w.T, objects)[section].Spec.Selector
			g.Expect(got.Spec).To(Equal(wanted), "%s of %s", value, section)
			g.Expect(objects).To(HaveLen(len(w.template(nil))+1), "the other manager has none")
		}
	}
}

func (w *world) warnAboutReplicas() {
	g := NewWithT(w)
	const warning = "WARNING: controlPlane.replicas is 1"
	budget := map[string]any{"minAvailable": 1}
	constraint := []any{map[string]any{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}}
	chart := w.withNotes()
	for _, tc := range []struct {
		values map[string]any
		want   OmegaMatcher
	}{
		{map[string]any{"podDisruptionBudget": budget}, ContainSubstring(warning)},
		{map[string]any{"topologySpreadConstraints": constraint}, ContainSubstring(warning)},
		{map[string]any{"podDisruptionBudget": budget, "replicas": 2}, Not(ContainSubstring("WARNING"))},
		{map[string]any{"podDisruptionBudget": budget, "enabled": false}, Not(ContainSubstring("WARNING"))},
		{map[string]any{"priorityClassName": "high"}, Not(ContainSubstring("WARNING"))},
	} {
		inner := *w
		inner.chart = chart
		notes := byName(w.T, inner.template(at("controlPlane", tc.values)))["ConfigMap /notes"]
		g.Expect(notes).To(HaveKeyWithValue("data", HaveKeyWithValue("notes", And(ContainSubstring("are installed in namespace "+namespace),
			tc.want))), "%v", tc.values)
	}
}

// withNotes returns a copy of the chart that also renders its notes into a ConfigMap. helm template does not print notes,
// and helm install needs a cluster even for --dry-run.
func (w *world) withNotes() string {
	w.Helper()
	g := NewWithT(w)
	dir := w.TempDir()
	out, err := exec.CommandContext(w.Context(), "tar", "--extract", "--gzip", "--directory", dir, "--file", w.chart).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	chart := filepath.Join(dir, "cluster-api-provider-openshift-agent")
	g.Expect(os.WriteFile(filepath.Join(chart, "templates", "notes.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\n"+
		`data: {notes: {{ include (print $.Template.BasePath "/NOTES.txt") . | toJson }}}`), 0o600)).To(Succeed())
	return chart
}

// compare compares what the chart gives with what is wanted, object by object.
func (w *world) compare(given, wanted []unstructured.Unstructured) {
	w.Helper()
	g := NewWithT(w)
	found, all := byName(w.T, given), byName(w.T, wanted)
	g.Expect(slices.Collect(maps.Keys(found))).To(ConsistOf(slices.Collect(maps.Keys(all))))
	for key, object := range found {
		g.Expect(object).To(BeComparableTo(all[key]), key)
	}
}

// components are what clusterctl installs of both providers.
func (w *world) components(variant string, variables *strings.Replacer) []unstructured.Unstructured {
	w.Helper()
	var all []unstructured.Unstructured
	for folder, provider := range providers {
		all = append(all, w.read(folder, provider.components+variant+".yaml", variables)...)
	}
	return all
}

// withDefault is a variable for which clusterctl takes the default when the user gives no value.
var withDefault = regexp.MustCompile(`\$\{[A-Z_]+:=([^}]*)\}`)

// read reads objects from a file of a release, as they are in the namespace of the chart.
func (w *world) read(folder, file string, variables *strings.Replacer) []unstructured.Unstructured {
	w.Helper()
	g := NewWithT(w)
	content, err := os.ReadFile(filepath.Join(w.release, folder, version, file))
	g.Expect(err).NotTo(HaveOccurred())
	text := string(content)
	if variables != nil {
		text = variables.Replace(text)
	}
	text = strings.ReplaceAll(withDefault.ReplaceAllString(text, "$1"), providers[folder].namespace, namespace)
	objects, err := yaml.ToUnstructured([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(objects, func(o unstructured.Unstructured) bool { return o.GetKind() == "Namespace" }) // Helm makes it
}

// byName are objects by their kinds and names, without the labels and annotations of the chart for Helm and clusterctl.
// Flags are sorted.
func byName(t *testing.T, objects []unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	g := NewWithT(t)
	found := map[string]map[string]any{}
	for i := range objects {
		o := objects[i].DeepCopy()
		switch o.GetKind() {
		case "CustomResourceDefinition":
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "helm.sh/resource-policy")
			unstructured.RemoveNestedField(o.Object, "metadata", "labels", "clusterctl.cluster.x-k8s.io")
		case "Deployment":
			containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			g.Expect(err).NotTo(HaveOccurred())
			args := containers[0].(map[string]any)["args"].([]any)
			for i := range args {
				args[i] = strings.TrimSuffix(args[i].(string), "=true")
			}
			slices.SortFunc(args, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			g.Expect(unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers")).To(Succeed())
		}
		key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		g.Expect(found).NotTo(HaveKey(key))
		found[key] = o.Object
	}
	return found
}

// deployments are the two that are among objects, by the sections of their values.
func deployments(t *testing.T, objects []unstructured.Unstructured) map[string]*appsv1.Deployment {
	t.Helper()
	found := map[string]*appsv1.Deployment{}
	for i := range objects {
		if objects[i].GetKind() != "Deployment" {
			continue
		}
		deployment := &appsv1.Deployment{}
		NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(objects[i].Object, deployment, true)).To(Succeed())
		section := "bootstrap"
		if strings.Contains(deployment.Name, "control-plane") {
			section = "controlPlane"
		}
		found[section] = deployment
	}
	return found
}

// places returns, for each value of a provider, the part of its Deployment that has the value.
var places = map[string]struct {
	value any
	found func(*appsv1.Deployment) any
	want  any
}{
	"image.repository": {"mirror.example.com/manager", image, "mirror.example.com/manager:v0.1.0"},
	"image.tag":        {"v0.1.9", image, HaveSuffix(":v0.1.9")},
	"image.digest":     {digest, image, HaveSuffix("-provider@" + digest)},
	"image.pullPolicy": {"Always", func(d *appsv1.Deployment) any { return container(d).ImagePullPolicy }, corev1.PullAlways},
	"replicas":         {2, func(d *appsv1.Deployment) any { return *d.Spec.Replicas }, int32(2)},
	"flags": {
		map[string]any{"v": 5, "kube-api-burst": 2000000, "leader-elect": false, "diagnostics-address": ":9000"},
		args, ContainElements("--v=5", "--kube-api-burst=2000000", "--leader-elect=false", "--diagnostics-address=:9000",
			"--insecure-diagnostics=false"),
	},
	"env": {
		[]any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy.example.com"}},
		func(d *appsv1.Deployment) any { return container(d).Env }, ContainElements(HaveField("Name", "POD_NAMESPACE"),
			HaveField("Name", "MEMORY_LIMIT"), Equal(corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example.com"})),
	},
	"resources": {map[string]any{"limits": map[string]any{"memory": "2Gi"}}, resources, []string{"2Gi", "250m"}},
	"nodeSelector": {
		map[string]any{"example.com/infra": ""},
		func(d *appsv1.Deployment) any { return d.Spec.Template.Spec.NodeSelector },
		map[string]string{"example.com/infra": ""},
	},
	"tolerations": {
		[]any{map[string]any{"key": "example.com/infra"}},
		func(d *appsv1.Deployment) any { return d.Spec.Template.Spec.Tolerations },
		[]corev1.Toleration{{Key: "example.com/infra"}},
	},
	"affinity": {
		map[string]any{"podAntiAffinity": map[string]any{}},
		func(d *appsv1.Deployment) any { return d.Spec.Template.Spec.Affinity }, &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}},
	},
	"priorityClassName": {
		"system-cluster-critical", func(d *appsv1.Deployment) any { return d.Spec.Template.Spec.PriorityClassName },
		"system-cluster-critical",
	},
	"topologySpreadConstraints": {
		[]any{
			map[string]any{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
			map[string]any{
				"maxSkew": 2, "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule",
				"labelSelector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
			},
		},
		spread,
		[]string{"zone 1 own Pods", "host 2 app=x"},
	},
	"volumes": {
		[]any{map[string]any{"name": "cache", "emptyDir": map[string]any{"sizeLimit": "1Gi"}}},
		func(d *appsv1.Deployment) any { return d.Spec.Template.Spec.Volumes },
		ContainElement(corev1.Volume{Name: "cache", VolumeSource: corev1.VolumeSource{
			EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse("1Gi"))},
		}}),
	},
	"volumeMounts": {
		[]any{map[string]any{"name": "cache", "mountPath": "/var/cache", "readOnly": true}},
		func(d *appsv1.Deployment) any { return container(d).VolumeMounts },
		ContainElement(corev1.VolumeMount{Name: "cache", MountPath: "/var/cache", ReadOnly: true}),
	},
	"podAnnotations": {
		map[string]any{"example.com/team": "hub"},
		func(d *appsv1.Deployment) any { return d.Spec.Template.Annotations },
		And(HaveKeyWithValue("example.com/team", "hub"), HaveKeyWithValue("kubectl.kubernetes.io/default-container", "manager")),
	},
}

// placesOfBoth are the values that are for both.
var placesOfBoth = map[string]struct {
	value any
	found func(*appsv1.Deployment) any
	want  any
}{
	"watchNamespace":               {"lab", args, ContainElement("--namespace=lab")},
	"watchFilter":                  {"green", args, ContainElement("--watch-filter=green")},
	"trustedAuthorities.configMap": {"hub-authorities", authorities, ConsistOf("configMap hub-authorities", trustDirectory, trustVariable)},
	"trustedAuthorities.secret":    {"hub-authorities", authorities, ConsistOf("secret hub-authorities", trustDirectory, trustVariable)},
	"imagePullSecrets": {
		[]any{map[string]any{"name": "registry"}},
		func(d *appsv1.Deployment) any { return d.Spec.Template.Spec.ImagePullSecrets },
		[]corev1.LocalObjectReference{{Name: "registry"}},
	},
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func container(d *appsv1.Deployment) corev1.Container { return d.Spec.Template.Spec.Containers[0] }

func image(d *appsv1.Deployment) any { return container(d).Image }

func resources(d *appsv1.Deployment) any {
	r := container(d).Resources
	return []string{r.Limits.Memory().String(), r.Requests.Cpu().String()}
}

// spread are the topology spread constraints with their selected Pods.
func spread(d *appsv1.Deployment) any {
	var found []string
	for _, constraint := range d.Spec.Template.Spec.TopologySpreadConstraints {
		selected := metav1.FormatLabelSelector(constraint.LabelSelector)
		if equality.Semantic.DeepEqual(constraint.LabelSelector, d.Spec.Selector) {
			selected = "own Pods"
		}
		found = append(found, fmt.Sprint(constraint.TopologyKey, " ", constraint.MaxSkew, " ", selected))
	}
	return found
}

const (
	trustDirectory   = "/etc/openshift-agent/trusted-authorities"
	serviceDirectory = "/etc/openshift-agent/assisted-service-authorities"
	// trustVariable keeps the directories of Go; SSL_CERT_FILE would replace the authorities of the image.
	trustVariable = trustDirectory + ":/etc/ssl/certs:/etc/pki/tls/certs"
)

// authorities are the source of the trusted authorities, where it is mounted, and the variable that names the place.
func authorities(d *appsv1.Deployment) any {
	var found []string
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				found = append(found, "configMap "+source.ConfigMap.Name)
			}
			if source.Secret != nil {
				found = append(found, "secret "+source.Secret.Name)
			}
		}
		for _, mount := range container(d).VolumeMounts {
			if mount.Name == v.Name && mount.ReadOnly {
				found = append(found, mount.MountPath)
			}
		}
	}
	for _, variable := range container(d).Env {
		if variable.Name == "SSL_CERT_DIR" {
			found = append(found, variable.Value)
		}
	}
	return found
}

func args(d *appsv1.Deployment) any { return container(d).Args }

func (w *world) followValues() {
	g := NewWithT(w)
	for path, place := range placesOfBoth {
		for section, deployment := range deployments(w.T, w.template(at(path, place.value))) {
			g.Expect(place.found(deployment)).To(match(place.want), "%s in %s", path, section)
		}
	}
	all := slices.Collect(maps.Keys(placesOfBoth))
	for _, section := range []string{"bootstrap", "controlPlane"} {
		other := map[string]string{"bootstrap": "controlPlane", "controlPlane": "bootstrap"}[section]
		untouched := deployments(w.T, w.template(nil))[other]
		for path, place := range places {
			found := deployments(w.T, w.template(at(section+"."+path, place.value)))
			g.Expect(place.found(found[section])).To(match(place.want), "%s.%s", section, path)
			g.Expect(found[other]).To(Equal(untouched), "%s.%s is nothing for the other", section, path)
			all = append(all, section+"."+path)
		}
		all = append(all, section+".enabled")
	}
	for _, source := range []string{"configMap", "secret"} {
		path := "bootstrap.assistedServiceAuthorities." + source
		found := deployments(w.T, w.template(at(path, "ai-authorities")))
		g.Expect(authorities(found["bootstrap"])).To(ConsistOf(source+" ai-authorities", serviceDirectory), path)
		g.Expect(args(found["bootstrap"])).To(ContainElement("--assisted-service-authorities=" + serviceDirectory))
		g.Expect(found["controlPlane"]).To(Equal(deployments(w.T, w.template(nil))["controlPlane"]))
		all = append(all, path)
	}
	unset := map[string]any{"configMap": nil, "secret": nil}
	for _, path := range []string{"bootstrap.assistedServiceAuthorities", "trustedAuthorities"} {
		g.Expect(deployments(w.T, w.template(at(path, unset)))).To(Equal(deployments(w.T, w.template(nil))), "%s: null removes the values", path)
	}
	for _, section := range []string{"bootstrap", "controlPlane"} {
		all = append(all, section+".podDisruptionBudget", section+".additionalEgress") // see limitDisruptions and addEgress
		w.addEgress(section)
	}
	// See compareManifests.
	all = append(all, "podMonitor.enabled", "podMonitor.labels", "networkPolicy.enabled", "networkPolicy.egress.enabled")
	all = append(all, "crds.install", "openshiftHub", "admissionPolicies.install", "controlPlane.inPlaceUpdates.enabled",
		"controlPlane.inPlaceUpdates.namespaces")
	g.Expect(w.values(func(path string) bool { _, known := places[path[strings.Index(path, ".")+1:]]; return known })).To(ConsistOf(all),
		"each value has a place that is checked")
}

// addEgress checks that the rules of a provider are added to the NetworkPolicy of its manager only.
func (w *world) addEgress(section string) {
	w.Helper()
	g := NewWithT(w)
	values := at("networkPolicy.egress.enabled", true)
	without := byName(w.T, w.template(values))
	rule := map[string]any{"ports": []any{map[string]any{"port": float64(3128), "protocol": "TCP"}}}
	values[section] = map[string]any{"additionalEgress": []any{rule}}
	changed := 0
	for key, object := range byName(w.T, w.template(values)) {
		if equality.Semantic.DeepEqual(object, without[key]) {
			continue
		}
		changed++
		name := map[string]string{"bootstrap": "bootstrap", "controlPlane": "control-plane"}[section]
		g.Expect(key).To(Equal("NetworkPolicy " + namespace + "/" + name + "-manager-egress"))
		rules, _, err := unstructured.NestedSlice(object, "spec", "egress")
		g.Expect(err).NotTo(HaveOccurred())
		before, _, err := unstructured.NestedSlice(without[key], "spec", "egress")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(rules).To(Equal(append(before, rule)))
	}
	g.Expect(changed).To(Equal(1))
	g.Expect(w.template(at(section+".additionalEgress", []any{rule}))).To(HaveLen(len(w.template(nil))), "without egress it has no effect")
}

func match(want any) OmegaMatcher {
	if matcher, is := want.(OmegaMatcher); is {
		return matcher
	}
	return Equal(want)
}

// values are the paths of the values of the chart. Values below a path that is whole are not listed.
func (w *world) values(whole func(path string) bool) []string {
	w.Helper()
	g := NewWithT(w)
	out, err := w.helm("show", "values", w.chart)
	g.Expect(err).NotTo(HaveOccurred(), out)
	var values map[string]any
	g.Expect(sigsyaml.Unmarshal([]byte(out), &values)).To(Succeed())
	var found []string
	var collect func(prefix string, of map[string]any)
	collect = func(prefix string, of map[string]any) {
		for key, value := range of {
			if below, _ := value.(map[string]any); len(below) > 0 && !whole(prefix+key) {
				collect(prefix+key+".", below)
			} else {
				found = append(found, prefix+key)
			}
		}
	}
	collect("", values)
	return found
}

func (w *world) leaveOut() {
	g := NewWithT(w)
	all := slices.Collect(maps.Keys(byName(w.T, w.template(nil))))
	for path, names := range map[string]string{
		"crds.install": "^CustomResourceDefinition ", "admissionPolicies.install": "^ValidatingAdmissionPolicy",
		"bootstrap.enabled": "bootstrap|^ValidatingAdmissionPolicy|openshiftassistedconfig", "controlPlane.enabled": "control-?plane",
	} {
		left := slices.Collect(maps.Keys(byName(w.T, w.template(at(path, false)))))
		g.Expect(left).NotTo(BeEmpty())
		g.Expect(left).To(ConsistOf(slices.DeleteFunc(slices.Clone(all), regexp.MustCompile(names).MatchString)), path)
	}
}

func (w *world) misspell() {
	g := NewWithT(w)
	for values, complaint := range map[string]string{
		"bootstrap.replica=2":                         "additional properties 'replica' not allowed",
		"controlplane.replicas=2":                     "additional properties 'controlplane' not allowed",
		"watchNamespaces=lab":                         "additional properties 'watchNamespaces' not allowed",
		"crds.keep=false":                             "additional properties 'keep' not allowed",
		"bootstrap.image.name=x":                      "additional properties 'name' not allowed",
		"bootstrap.flags.watchfilter=x":               "invalid propertyName 'watchfilter'",
		"bootstrap.flags.ocp-release-repository=x":    "invalid propertyName 'ocp-release-repository'",
		"controlPlane.flags.namespace=lab":            "invalid propertyName 'namespace'",
		"controlPlane.resources.limit.memory=1Gi":     "additional properties 'limit' not allowed",
		"controlPlane.inPlaceUpdates.enabled=true":    "minItems: got 0, want 1",
		"controlPlane.image.digest=0123":              "does not match pattern",
		"controlPlane.image.tag=v0.1.0@sha256:0":      "does not match pattern",
		"watchNamespace=Lab":                          "does not match pattern",
		"bootstrap.replicas=-1":                       "minimum: got -1, want 0",
		"bootstrap.inPlaceUpdates.enabled=true":       "additional properties 'inPlaceUpdates' not allowed",
		"controlPlane.tolerations.key=x":              "got object, want array",
		"openshiftHub=maybe":                          "got string, want null or boolean",
		"admissionPolicies.install=maybe":             "got string, want boolean",
		"bootstrap.image.pullPolicy=Sometimes":        "value must be one of 'Always', 'IfNotPresent', 'Never'",
		"bootstrap.podAnnotations.example\\.com/x=tr": "",
		"podMonitor.enable=true":                      "additional properties 'enable' not allowed",
		"podMonitor.labels.a=1":                       "got number, want string",
		"networkPolicy.egress=true":                   "got boolean, want object",
		"networkPolicy.egress.rules[0].x=1":           "additional properties 'rules' not allowed",
		"bootstrap.podDisruptionBudget.enabled=true":  "additional properties 'enabled' not allowed",
		"bootstrap.podDisruptionBudget.minAvailable=1,bootstrap.podDisruptionBudget.maxUnavailable=1": "subschemas 0, 1 matched",
		"bootstrap.podDisruptionBudget.unhealthyPodEvictionPolicy=AlwaysAllow":                        "missing property 'maxUnavailable'",
		"bootstrap.podDisruptionBudget.minAvailable=-1":                                               "minimum: got -1, want 0",
		"bootstrap.podDisruptionBudget.minAvailable=half":                                             "does not match pattern",
		"bootstrap.podDisruptionBudget.minAvailable=50%":                                              "",
		"controlPlane.topologySpreadConstraints[0].maxSkew=1":                                         "missing properties 'topologyKey'",
		"controlPlane.volumes[0].emptyDir.medium=Memory":                                              "missing property 'name'",
		"controlPlane.volumeMounts[0].name=x,controlPlane.volumeMounts[0].path=/x":                    "additional properties 'path' not allowed",
		"controlPlane.additionalEgress[0].port=443":                                                   "additional properties 'port' not allowed",
		"controlPlane.additionalEgress[0].ports[0].port=443":                                          "",
	} {
		out, err := w.helm("template", "openshift-agent", w.chart, "--kube-version", "1.31.0", "--set", values)
		if complaint == "" {
			g.Expect(err).NotTo(HaveOccurred(), out)
			continue
		}
		g.Expect(err).To(HaveOccurred(), values)
		g.Expect(out).To(ContainSubstring(complaint), values)
	}
}

func (w *world) push() {
	g := NewWithT(w)
	server := httptest.NewServer(registryserver.New(registryserver.Logger(log.New(io.Discard, "", 0))))
	w.Cleanup(server.Close)
	repository := strings.Replace(server.URL, "http://", "oci://", 1) + "/charts"
	out, err := w.helm("push", w.chart, repository, "--plain-http")
	g.Expect(err).NotTo(HaveOccurred(), out)
	pulled := w.TempDir()
	out, err = w.helm("pull", repository+"/cluster-api-provider-openshift-agent", "--version", strings.TrimPrefix(version, "v"),
		"--plain-http", "--destination", pulled)
	g.Expect(err).NotTo(HaveOccurred(), out)
	content, err := os.ReadFile(filepath.Join(pulled, filepath.Base(w.chart)))
	g.Expect(err).NotTo(HaveOccurred())
	released, err := os.ReadFile(w.chart)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(bytes.Equal(content, released)).To(BeTrue(), "what comes out is what is released")
}
