package gather

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// filled are all kinds whose types this module has, by apiVersion. Every string of them is filled. All other kinds that are
// read get the fields of anyObject.
var filled = map[string][]any{
	"cluster.x-k8s.io/v1beta2": {
		&clusterv1.Cluster{}, &clusterv1.Machine{}, &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{},
		&clusterv1.MachineHealthCheck{}, &clusterv1.ClusterClass{},
	},
	"controlplane.cluster.x-k8s.io/v1beta1": {
		&controlplanev1.OpenshiftAssistedControlPlane{}, &controlplanev1.OpenshiftAssistedControlPlaneTemplate{},
	},
	"bootstrap.cluster.x-k8s.io/v1beta1": {&bootstrapv1.OpenshiftAssistedConfig{}, &bootstrapv1.OpenshiftAssistedConfigTemplate{}},
	"metal3.io/v1alpha1": {
		&metal3api.BareMetalHost{}, &metal3api.HardwareData{}, &metal3api.HostFirmwareSettings{}, &metal3api.HostFirmwareComponents{},
		&metal3api.PreprovisioningImage{}, &metal3api.DataImage{}, &metal3api.BMCEventSubscription{},
	},
	"hive.openshift.io/v1":                 {&hivev1.ClusterDeployment{}, &hivev1.ClusterImageSet{}},
	"extensions.hive.openshift.io/v1beta1": {&hiveext.AgentClusterInstall{}},
	"agent-install.openshift.io/v1beta1":   {&aiv1beta1.InfraEnv{}, &aiv1beta1.Agent{}, &aiv1beta1.NMStateConfig{}},
	"v1":                                   {&corev1.Event{}, &corev1.Pod{}},
}

// anyObject is an object of a kind without a type here. Its fields are those of Metal3, IPAM, NMState and Cluster API that
// may have credentials, in a spec, in a status, and in a list.
type anyObject struct {
	Spec   anyFields `json:"spec"`
	Status anyFields `json:"status"`
}

type anyFields struct {
	URL, Checksum, Note, Password, Psk, Token string
	UserData, NetworkData                     struct{ Name, Content, Value string }
	Config                                    map[string]struct{ Identity, Text, PrivateKeyPassword, Password, Psk string }
	Conditions, Resources, Items              []struct{ Type, Reason, Message, Error, Description string }
	Settings                                  map[string]string
}

// secretFields are the names of fields that consist of a credential, as the API of each project documents them.
var secretFields = regexp.MustCompile(`(?i)^(.*password|psk|token|ignitionConfigOverrides?|kubeconfig|userData|` +
	`kubectl.kubernetes.io/last-applied-configuration|bmac.agent-install.openshift.io/ignition-config-overrides)$`)

// planter plants credentials with distinct markers.
type planter struct{ count int }

func (p *planter) marker() string {
	p.count++
	return fmt.Sprintf("Planted%dX", p.count)
}

// text returns a free text with credentials in every form.
func (p *planter) text() string {
	m := p.marker()
	return "see https://root:" + m + "@host1/images/" + m + "?api_key=" + m + "&a=b with Authorization: Bearer " + m + "aaaa, password=" + m +
		` {"auths":{"quay.io":{"auth":"` + m + `"}},"token":"` + m + `"} {\"password\":\"` + m + `\"} {\u0022token\u0022:\u0022` + m +
		`\u0022} the password of root is ` + m + ` htpasswd -b users admin ` + m + `; ` +
		"eyJhbGciOiJFUzI1NiJ9." + m + ".c2ln data:text/plain;base64," + m + " ipmitool -P " + m + " sha256~" + m + "aaaaaaaa " +
		base64.StdEncoding.EncodeToString([]byte("-----BEGIN PRIVATE KEY-----"))[:14] + m +
		"\n    client-key-data: " + m + "\n-----BEGIN RSA PRIVATE KEY-----\n" + m + "\n-----END RSA PRIVATE KEY-----\n"
}

const placeholder = "placeholder"

// fill fills every string of a value. Inside of a type, it leaves the same type empty.
func fill(v reflect.Value, inside ...reflect.Type) {
	if !v.CanSet() || v.Kind() == reflect.Struct && slices.Contains(inside, v.Type()) {
		return
	}
	inside = append(slices.Clip(inside), v.Type())
	switch v.Interface().(type) {
	case metav1.Time, metav1.MicroTime, metav1.Duration, time.Time:
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"password":"placeholder","note":"placeholder"}`)}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(placeholder)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), inside...)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), inside...)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), inside...)
		}
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		fill(item, inside...)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("note").Convert(v.Type().Key()), item)
		v.SetMapIndex(reflect.ValueOf("adminPassword").Convert(v.Type().Key()), item)
	}
}

// plant replaces the strings of a decoded object.
func (p *planter) plant(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			value[key] = p.plant(key, item)
		}
	case []any:
		for i := range value {
			value[i] = p.plant(name, value[i])
		}
	case string:
		switch {
		case value != placeholder:
		case secretFields.MatchString(name):
			return p.marker()
		default:
			return p.text()
		}
	}
	return value
}

// plant adds an object of a kind whose strings are credentials, or texts with credentials.
func (h *hub) plant(t *testing.T, p *planter, version, kind string, object any) {
	t.Helper()
	fill(reflect.ValueOf(object).Elem())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	p.plant("", content)
	content["apiVersion"], content["kind"] = version, kind
	content["metadata"] = map[string]any{
		"namespace": "lab", "name": "planted", "labels": map[string]any{"cluster.x-k8s.io/cluster-name": "ha"},
		"annotations": map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": p.marker(), "note": p.text(),
			"bmac.agent-install.openshift.io/ignition-config-overrides": p.marker(),
			"agent-install.openshift.io/install-config-overrides":       `{"fencing":{"credentials":[{"password":"` + p.marker() + `"}]}}`,
		},
	}
	switch kind {
	case snapshot.KindCluster: // another cluster would be left out
		content["metadata"].(map[string]any)["name"] = "ha"
		content["spec"].(map[string]any)["controlPlaneRef"] = map[string]any{
			"apiGroup": controlplanev1.GroupVersion.Group, "kind": snapshot.KindControlPlane, "name": "planted",
		}
		h.objects[kind] = nil
	case kindInstall: // so that the ClusterImageSet is read
		spec := content["spec"].(map[string]any)
		spec["imageSetRef"] = map[string]any{"name": "planted"}
	}
	h.objects[kind] = append(h.objects[kind], content)
}

// TestNoCredentialReachesTheArchive plants credentials in every string of every kind, in logs, events and host logs.
func TestNoCredentialReachesTheArchive(t *testing.T) {
	g, h, p := NewWithT(t), newHub(t), &planter{}
	for _, kind := range []string{kindSecret, "ConfigMap"} {
		h.add(t, strings.ReplaceAll(strings.ReplaceAll(secret, "planted", p.marker()), "kind: Secret", "kind: "+kind))
	}
	for version, objects := range filled {
		for _, object := range objects {
			h.plant(t, p, version, reflect.TypeOf(object).Elem().Name(), object)
		}
	}
	for _, k := range kinds() {
		if !k.metadataOnly && len(h.objects[k.name]) == 0 {
			h.plant(t, p, k.group+"/"+k.versions[0], k.name, &anyObject{})
		}
	}
	g.Expect(p.count).To(BeNumerically(">", 1000), "strings that were filled")
	log := strings.Join([]string{p.text(), p.text(), p.text()}, "")
	h.log = func(context.Context, string, string, *corev1.PodLogOptions) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(log)), nil
	}
	s := h.sources()
	s.Service = serve(t, h, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			_, _ = fmt.Fprintf(w, `[{"event_time":"2026-11-29T11:20:00Z","message":%q,"name":%q,"props":%q}]`,
				"token="+p.marker(), "password="+p.marker(), `{"pull_secret":"`+p.marker()+`"}`)
			return
		}
		_, _ = w.Write([]byte(tarGz(t, [2]string{"journal.log", log}, [2]string{"pull-secret", p.marker()})))
	}).Client()
	o := options(t)
	o.LogBytes = 1 << 20
	_, err := Write(t.Context(), s, o)
	g.Expect(err).NotTo(HaveOccurred())
	files := contentOf(t, o.Output)
	for _, k := range kinds() {
		file := "objects/" + k.title() + "/planted.yaml"
		if k.name == snapshot.KindCluster {
			file = "objects/" + k.title() + "/ha.yaml"
		}
		if k.name == kindEvent || k.metadataOnly { // in one file each
			file = "objects/" + k.title() + "s.yaml"
		}
		g.Expect(files).To(HaveKey(file), "every kind")
		g.Expect(files[file]).To(Or(ContainSubstring("[redacted]"), ContainSubstring("data")), file)
	}
	for name, content := range files {
		g.Expect(name).NotTo(ContainSubstring("Planted"))
		if at := strings.Index(content, "Planted"); at >= 0 {
			t.Errorf("%s contains a credential: %q", name, content[max(0, at-120):min(len(content), at+40)])
		}
		g.Expect(content).NotTo(ContainSubstring("planted-api-key"), name)
	}
}
