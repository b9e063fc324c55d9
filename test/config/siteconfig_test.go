package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/siteconfig"
)

// taggedRelease is a release image in the form that ClusterImageSets use.
const taggedRelease = "quay.io/openshift-release-dev/ocp-release:4.19.10-x86_64"

// siteconfigTemplates returns the shipped ConfigMaps, and the other objects in their manifests.
func siteconfigTemplates(t *testing.T) (templates []corev1.ConfigMap, others []map[string]any) {
	t.Helper()
	for _, object := range components(t, "siteconfig") {
		if object["kind"] != "ConfigMap" {
			others = append(others, object)
			continue
		}
		var template corev1.ConfigMap
		convert(t, object, &template)
		templates = append(templates, template)
	}
	NewWithT(t).Expect(templates).To(HaveLen(2))
	return templates, others
}

// siteconfigSamples returns the shipped ClusterInstances, by file name.
func siteconfigSamples(t *testing.T) map[string]*siteconfig.ClusterInstance {
	t.Helper()
	g, samples := NewWithT(t), map[string]*siteconfig.ClusterInstance{}
	files, err := filepath.Glob("../../config/siteconfig/samples/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		content, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		samples[strings.TrimSuffix(filepath.Base(file), ".yaml")], err = siteconfig.Load(content)
		g.Expect(err).NotTo(HaveOccurred(), file)
	}
	g.Expect(samples).To(And(HaveKey("sno"), HaveKey("ha")))
	return samples
}

func TestObjectsOfRenderedClusterInstancesAreAccepted(t *testing.T) {
	all := mustLoadSchemas(t)
	templates, _ := siteconfigTemplates(t)
	for name, sample := range siteconfigSamples(t) {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			objects, err := sample.Render(taggedRelease, templates...)
			g.Expect(err).NotTo(HaveOccurred())
			var stream bytes.Buffer
			// The pull secret and the ClusterImageSet are on the hub already.
			fmt.Fprintf(&stream, "apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\n", sample.Spec.PullSecretRef.Name)
			fmt.Fprintf(&stream, "---\napiVersion: hive.openshift.io/v1\nkind: ClusterImageSet\nmetadata: {name: %s}\n",
				sample.Spec.ClusterImageSetNameRef)
			for _, object := range objects {
				g.Expect(object.GetNamespace()).To(Equal(sample.Namespace), object.GetKind())
				content, err := json.Marshal(object)
				g.Expect(err).NotTo(HaveOccurred())
				fmt.Fprintf(&stream, "---\n%s\n", content)
				if object.GetKind() != "NMStateConfig" { // checkSiteconfig validates it on a management cluster
					g.Expect(all.admit(t.Context(), object.Object, nil)).To(Succeed(), "%s", object.GetKind())
				}
			}
			g.Expect(linked(stream.Bytes())).To(Succeed())
			g.Expect(objects[len(objects)-1].GetKind()).To(Equal("Cluster"),
				"the object that is created last is deleted first, and its Machines before their hosts")
		})
	}
}

// rendered has the objects of a rendered ClusterInstance.
type rendered struct {
	cluster      clusterv1.Cluster
	controlPlane controlplanev1.OpenshiftAssistedControlPlane
	workers      clusterv1.MachineDeployment
	config       bootstrapv1.OpenshiftAssistedConfigTemplate
	machines     map[string]unstructured.Unstructured // Metal3MachineTemplates, by name
	hosts        map[string]metal3api.BareMetalHost
	networks     map[string]aiv1beta1.NMStateConfig
}

func renderInstance(t *testing.T, instance *siteconfig.ClusterInstance, release string) (r rendered, err error) {
	t.Helper()
	templates, _ := siteconfigTemplates(t)
	objects, err := instance.Render(release, templates...)
	r.machines, r.hosts, r.networks = map[string]unstructured.Unstructured{}, map[string]metal3api.BareMetalHost{},
		map[string]aiv1beta1.NMStateConfig{}
	for _, object := range objects {
		var host metal3api.BareMetalHost
		var network aiv1beta1.NMStateConfig
		into := map[string]any{
			"Cluster": &r.cluster, "OpenshiftAssistedControlPlane": &r.controlPlane, "MachineDeployment": &r.workers,
			"OpenshiftAssistedConfigTemplate": &r.config, "BareMetalHost": &host, "NMStateConfig": &network,
		}[object.GetKind()]
		if into != nil {
			NewWithT(t).Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)).To(Succeed(), object.GetKind())
		}
		switch object.GetKind() {
		case "Metal3MachineTemplate":
			r.machines[object.GetName()] = *object
		case "BareMetalHost":
			r.hosts[host.Name] = host
		case "NMStateConfig":
			r.networks[network.Name] = network
		}
	}
	return r, err
}

func TestClusterInstanceIsRenderedIntoOurObjects(t *testing.T) {
	g := NewWithT(t)
	instance := siteconfigSamples(t)["ha"]
	spec := &instance.Spec
	spec.HoldInstallation = true
	spec.NetworkType = "OpenShiftSDN"
	spec.CPUPartitioning = "AllNodes"
	spec.CPUArchitecture = "aarch64"
	spec.PlatformType = "BareMetal"
	spec.Proxy = &aiv1beta1.Proxy{HTTPProxy: "http://proxy.example.com:3128", NoProxy: ".example.com"}
	spec.ClusterNetwork = append(spec.ClusterNetwork, siteconfig.ClusterNetwork{CIDR: "fd01::/48", HostPrefix: 64})
	spec.ExtraManifestsRefs = []corev1.LocalObjectReference{{Name: "more"}}
	spec.DiskEncryption = &siteconfig.DiskEncryption{
		Type: "tang",
		Tang: []siteconfig.Tang{{URL: "http://tang.example.com", Thumbprint: "abc"}},
	}
	spec.ExtraAnnotations = map[string]map[string]string{"BareMetalHost": {"example.com/rack": "b7"}}
	spec.Nodes[0].NodeLabels = map[string]string{"example.com/empty": ""}
	spec.Nodes[0].BootMode = metal3api.UEFISecureBoot
	spec.Nodes[0].IronicInspect = "disabled"
	spec.Nodes[3].NodeNetwork = siteconfigSamples(t)["sno"].Spec.Nodes[0].NodeNetwork
	for i := range spec.Nodes[:3] {
		spec.Nodes[i].AutomatedCleaningMode = metal3api.CleaningModeMetadata
	}
	r, err := renderInstance(t, instance, taggedRelease)
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(r.cluster.Spec.ClusterNetwork.Pods.CIDRBlocks).To(Equal([]string{"10.128.0.0/14", "fd01::/48"}))
	g.Expect(r.cluster.Spec.ClusterNetwork.Services.CIDRBlocks).To(ConsistOf("172.30.0.0/16"))
	proxy := &bootstrapv1.Proxy{HTTPProxy: "http://proxy.example.com:3128", NoProxy: ".example.com"}
	g.Expect(r.controlPlane.Labels).To(And(HaveKeyWithValue("example.com/region", "north"),
		HaveKeyWithValue(siteconfig.OwnedByLabel, "site_site")))
	g.Expect(r.controlPlane.Spec.Replicas).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(r.controlPlane.Spec.DistributionVersion).To(Equal("4.19.10"))
	config := r.controlPlane.Spec.Config
	g.Expect(config.InstallConfigOverride).To(MatchJSON(`{"fips":true,"cpuPartitioningMode":"AllNodes",` +
		`"networking":{"networkType":"OpenShiftSDN"}}`))
	g.Expect(config.DiskEncryption.TangServers).To(MatchJSON(`[{"url":"http://tang.example.com","thumbprint":"abc"}]`))
	config.InstallConfigOverride, config.DiskEncryption.TangServers = "", ""
	hold := true
	g.Expect(config).To(Equal(controlplanev1.InstallationConfig{
		BaseDomain: "lab.example.com", ClusterImageSetRef: &controlplanev1.ClusterImageSetReference{Name: "openshift-4.19.10"},
		PullSecretRef: &corev1.LocalObjectReference{Name: "site-pull-secret"}, APIVIPs: []string{"192.168.111.5"},
		IngressVIPs:    []string{"192.168.111.6"},
		MachineNetwork: []string{"192.168.111.0/24"}, NetworkType: "OpenShiftSDN",
		HostPrefix: &controlplanev1.HostPrefix{IPv4: 23, IPv6: 64}, Proxy: proxy, SSHAuthorizedKey: spec.SSHPublicKey, HoldInstallation: &hold,
		ManifestsConfigMapRefs: []corev1.LocalObjectReference{{Name: "more"}},
		DiskEncryption:         &controlplanev1.DiskEncryption{EnableOn: "all", Mode: "tang"},
	}))

	discovered := bootstrapv1.OpenshiftAssistedConfigSpec{
		BootMode: bootstrapv1.BootModeLiveISO, CPUArchitecture: "aarch64", SSHAuthorizedKey: spec.SSHPublicKey,
		AdditionalNTPSources: []string{"ntp.lab.example.com"}, Proxy: proxy,
	}
	g.Expect(r.controlPlane.Spec.OpenshiftAssistedConfigSpec).To(Equal(discovered), "no node of the control plane has its own network")
	discovered.NMStateConfigLabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{
		"bootstrap.cluster.x-k8s.io/cluster": "site",
		"bootstrap.cluster.x-k8s.io/role":    "worker",
	}}
	g.Expect(r.config.Spec.Template.Spec).To(Equal(discovered))
	for _, annotations := range []map[string]string{
		r.controlPlane.Spec.MachineTemplate.ObjectMeta.Annotations,
		r.config.Spec.Template.ObjectMeta.Annotations,
	} {
		g.Expect(annotations).To(HaveKeyWithValue(bootstrapv1.DiscoveryIgnitionOverrideAnnotation, MatchJSON(spec.IgnitionConfigOverride)))
	}
	g.Expect(r.workers.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	for group, cleaning := range map[string]string{"site-control-plane": "metadata", "site-worker": "disabled"} {
		g.Expect(r.machines[group].Object).To(HaveKeyWithValue("spec",
			HaveKeyWithValue("template", HaveKeyWithValue("spec", HaveKeyWithValue("automatedCleaningMode", cleaning)))), group)
	}

	g.Expect(r.hosts).To(HaveLen(5))
	first, fourth := r.hosts["site-1"], r.hosts["site-4"]
	g.Expect(first.Spec).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"BootMode": BeEquivalentTo("UEFISecureBoot"), "Architecture": Equal("aarch64"), "Online": BeTrue(),
		"BootMACAddress":        Equal("52:54:00:aa:01:01"),
		"RootDeviceHints":       HaveValue(Equal(metal3api.RootDeviceHints{DeviceName: "/dev/sda"})),
		"AutomatedCleaningMode": BeEquivalentTo("metadata"),
		"BMC": Equal(metal3api.BMCDetails{
			Address: spec.Nodes[0].BmcAddress, CredentialsName: "site-1-bmc",
			DisableCertificateVerification: true,
		}),
	}))
	g.Expect(first.Annotations).To(And(HaveKeyWithValue("inspect.metal3.io", "disabled"), HaveKeyWithValue("example.com/rack", "b7"),
		HaveKeyWithValue("bmac.agent-install.openshift.io.node-label.example.com/empty", ""),
		HaveKeyWithValue("bmac.agent-install.openshift.io/role", "master")))
	g.Expect(first.Labels).NotTo(HaveKey("infraenvs.agent-install.openshift.io"), "Metal3 owns the host, not assisted-service")
	g.Expect(fourth.Annotations).To(And(
		HaveKeyWithValue("bmac.agent-install.openshift.io/hostname", "site-4"),
		HaveKeyWithValue("bmac.agent-install.openshift.io/role", "worker"),
		HaveKeyWithValue("bmac.agent-install.openshift.io/installer-args", `["--copy-network"]`),
		HaveKeyWithValue("bmac.agent-install.openshift.io/ignition-config-overrides", MatchJSON(spec.Nodes[3].IgnitionConfigOverride)),
		HaveKeyWithValue("bmac.agent-install.openshift.io.node-label.example.com/accelerator", "true"), Not(HaveKey("inspect.metal3.io"))))
	for _, host := range []metal3api.BareMetalHost{first, fourth} {
		group := map[string]string{"site-1": "site-control-plane", "site-4": "site-worker"}[host.Name]
		template := r.machines[group]
		selected, _, err := unstructured.NestedStringMap(template.Object, "spec", "template", "spec", "hostSelector", "matchLabels")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(selected).To(HaveLen(2))
		for key, value := range selected {
			g.Expect(host.Labels).To(HaveKeyWithValue(key, value), "chosen for "+group)
		}
	}
	g.Expect(r.networks).To(HaveLen(1))
	for key, value := range discovered.NMStateConfigLabelSelector.MatchLabels {
		g.Expect(r.networks["site-4"].Labels).To(HaveKeyWithValue(key, value))
	}
	g.Expect(string(r.networks["site-4"].Spec.Config)).To(ContainSubstring(`"next-hop-address":"192.168.111.1"`))
}

func TestVersionOfClusterInstance(t *testing.T) {
	annotated := map[string]map[string]string{
		"OpenshiftAssistedControlPlane": {"siteconfig.cluster.x-k8s.io/distribution-version": "4.20.0-ec.1"},
	}
	const digest = "registry.example.com:5000/ocp@sha256:" + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		image, imageSet, version string
		annotated                map[string]map[string]string
	}{
		"in the tag": {image: taggedRelease, imageSet: "any", version: "4.19.10"},
		"in the tag, with a digest": {
			image: strings.Replace(digest, "@", ":4.19.11-multi@", 1), imageSet: "any",
			version: "4.19.11",
		},
		"in the tag, a candidate": {image: "quay.io/ocp-release:4.20.0-rc.3-aarch64", imageSet: "any", version: "4.20.0-rc.3"},
		"in the tag, of OKD": {
			image: "quay.io/okd/scos-release:4.19.0-okd-scos.5", imageSet: "any",
			version: "4.19.0-okd-scos.5",
		},
		"in the tag, a candidate of OKD": {
			image: "quay.io/okd/scos-release:4.20.0-okd-scos.ec.3", imageSet: "any",
			version: "4.20.0-okd-scos.ec.3",
		},
		"in the tag, of a nightly build": {
			image:    "registry.ci.openshift.org/ocp/release:4.20.0-0.nightly-2025-09-01-120000",
			imageSet: "any", version: "4.20.0-0.nightly-2025-09-01-120000",
		},
		"in the tag, of a nightly build for Arm": {
			image: "registry.ci.openshift.org/ocp-arm64/release-arm64:4.20.0-0.nightly-arm64-2025-09-01-120000", imageSet: "any",
			version: "4.20.0-0.nightly-arm64-2025-09-01-120000",
		},
		"in the name, the image is by digest": {image: digest, imageSet: "img4.19.10-x86-64-appsub", version: "4.19.10"},
		"in the annotation, which overrides image and name": {
			image: taggedRelease, imageSet: "openshift-4.19.10", version: "4.20.0-ec.1",
			annotated: annotated,
		},
		"in the annotation only": {image: digest, imageSet: "latest", version: "4.20.0-ec.1", annotated: annotated},
		"nowhere":                {image: digest, imageSet: "latest"},
		"nowhere: the port of a registry is no version": {image: "registry.example.com:5000/4.19.10/ocp", imageSet: "latest"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			instance := siteconfigSamples(t)["sno"]
			instance.Spec.ClusterImageSetNameRef, instance.Spec.ExtraAnnotations = c.imageSet, c.annotated
			r, err := renderInstance(t, instance, c.image)
			if c.version == "" {
				g.Expect(err).To(MatchError(ContainSubstring("set it in extraAnnotations")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.controlPlane.Spec.DistributionVersion).To(Equal(c.version))
		})
	}
}

func TestUnsupportedClusterInstanceIsRejected(t *testing.T) {
	for message, change := range map[string]func(*siteconfig.Spec){
		"clusterType HostedControlPlane": func(s *siteconfig.Spec) { s.ClusterType = "HostedControlPlane" },
		"platformType None":              func(s *siteconfig.Spec) { s.PlatformType = "None" },
		"clusterNetwork 10.64.0.0/14 has another hostPrefix": func(s *siteconfig.Spec) {
			s.ClusterNetwork = append(s.ClusterNetwork, siteconfig.ClusterNetwork{CIDR: "10.64.0.0/14", HostPrefix: 24})
		},
		"diskEncryption type luks":   func(s *siteconfig.Spec) { s.DiskEncryption = &siteconfig.DiskEncryption{Type: "luks"} },
		"site-4 is a second arbiter": func(s *siteconfig.Spec) { s.Nodes[2].Role, s.Nodes[3].Role = "arbiter", "arbiter" },
		"hostRef names namespace pool": func(s *siteconfig.Spec) {
			s.Nodes[0].HostRef = &siteconfig.Reference{
				Name:      "a",
				Namespace: "pool",
			}
		},
		"site-2 has another cpuArchitecture than other nod": func(s *siteconfig.Spec) { s.Nodes[1].CPUArchitecture = "aarch64" },
		"site-5 has another cpuArchitecture than other wor": func(s *siteconfig.Spec) { s.Nodes[4].CPUArchitecture = "aarch64" },
		"site-2 has another automatedCleaningMode than oth": func(s *siteconfig.Spec) { s.Nodes[1].AutomatedCleaningMode = "metadata" },
		"site-5 has another automatedCleaningMode than oth": func(s *siteconfig.Spec) { s.Nodes[4].AutomatedCleaningMode = "metadata" },
	} {
		t.Run(message, func(t *testing.T) {
			instance := siteconfigSamples(t)["ha"]
			change(&instance.Spec)
			_, err := renderInstance(t, instance, taggedRelease)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(message)))
		})
	}
}

func TestClusterInstanceWithSeveralArchitectures(t *testing.T) {
	g := NewWithT(t)
	instance := siteconfigSamples(t)["ha"]
	instance.Spec.CPUArchitecture = "multi"
	for i := range instance.Spec.Nodes[3:] {
		instance.Spec.Nodes[3+i].CPUArchitecture = "aarch64"
	}
	instance.Spec.Nodes[4].HostRef = &siteconfig.Reference{Namespace: "site", Name: "from-the-pool"}
	r, err := renderInstance(t, instance, taggedRelease)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.controlPlane.Spec.OpenshiftAssistedConfigSpec.CPUArchitecture).To(Equal("x86_64"))
	g.Expect(r.hosts["site-1"].Spec.Architecture).To(Equal("x86_64"))
	g.Expect(r.config.Spec.Template.Spec.CPUArchitecture).To(Equal("aarch64"))
	g.Expect(r.hosts["from-the-pool"].Spec.Architecture).To(Equal("aarch64"))
}

func TestClusterInstanceWithArbiter(t *testing.T) {
	g := NewWithT(t)
	instance := siteconfigSamples(t)["ha"]
	instance.Spec.ClusterType, instance.Spec.ClusterImageSetNameRef = "HighlyAvailableArbiter", "openshift-4.20.4"
	arbiter := &instance.Spec.Nodes[2]
	arbiter.Role, arbiter.AutomatedCleaningMode = "arbiter", "metadata"
	arbiter.NodeNetwork = siteconfigSamples(t)["sno"].Spec.Nodes[0].NodeNetwork
	r, err := renderInstance(t, instance, strings.Replace(taggedRelease, "4.19.10", "4.20.4", 1))
	g.Expect(err).NotTo(HaveOccurred())
	cp := r.controlPlane.Spec
	g.Expect(cp.Replicas).To(HaveValue(BeEquivalentTo(3)))
	g.Expect(cp.Arbiter.MachineTemplate.Spec.InfrastructureRef.Name).To(Equal("site-arbiter"))
	g.Expect(r.hosts["site-3"].Annotations).To(HaveKeyWithValue("bmac.agent-install.openshift.io/role", "arbiter"))
	for group, hosts := range map[string][]string{
		"site-control-plane": {"site-1", "site-2"}, "site-arbiter": {"site-3"},
		"site-worker": {"site-4", "site-5"},
	} {
		template := r.machines[group]
		selected, found, err := unstructured.NestedStringMap(template.Object, "spec", "template", "spec", "hostSelector", "matchLabels")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeTrue(), group)
		for name, host := range r.hosts {
			g.Expect(labels.SelectorFromSet(selected).Matches(labels.Set(host.Labels))).To(Equal(slices.Contains(hosts, name)),
				"%s for %s", name, group)
		}
	}
	g.Expect(r.machines["site-arbiter"].Object).To(HaveKeyWithValue("spec",
		HaveKeyWithValue("template", HaveKeyWithValue("spec", HaveKeyWithValue("automatedCleaningMode", "metadata")))))
	networks, err := metav1.LabelSelectorAsSelector(cp.OpenshiftAssistedConfigSpec.NMStateConfigLabelSelector)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(networks.Matches(labels.Set(r.networks["site-3"].Labels))).To(BeTrue(),
		"the masters' selector includes the network of the arbiter")
	g.Expect(networks.Matches(labels.Set{
		"bootstrap.cluster.x-k8s.io/cluster": "site",
		"bootstrap.cluster.x-k8s.io/role":    "worker",
	})).To(BeFalse())
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r.controlPlane)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(mustLoadSchemas(t).admit(t.Context(), object, nil)).To(Succeed())
}

func TestZTPNamesAreTranslated(t *testing.T) {
	g := NewWithT(t)
	instance := siteconfigSamples(t)["ha"]
	instance.Spec.DiskEncryption = &siteconfig.DiskEncryption{
		Type: "nbde",
		Tang: []siteconfig.Tang{{URL: "http://tang.example.com", Thumbprint: "abc"}},
	}
	instance.Spec.Proxy = &aiv1beta1.Proxy{}
	r, err := renderInstance(t, instance, taggedRelease)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.controlPlane.Spec.Config.DiskEncryption.Mode).To(Equal("tang"))
	g.Expect(r.controlPlane.Spec.Config.Proxy).To(BeNil(), "an empty proxy is no proxy")
	g.Expect(r.controlPlane.Spec.OpenshiftAssistedConfigSpec.Proxy).To(BeNil())
	g.Expect(r.config.Spec.Template.Spec.Proxy).To(BeNil())
}

// Workers of a single-node cluster join later; the operator does not count them.
func TestSingleNodeClusterMayHaveWorkers(t *testing.T) {
	g := NewWithT(t)
	instance := siteconfigSamples(t)["sno"]
	r, err := renderInstance(t, instance, taggedRelease)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.workers.Spec.Replicas).To(HaveValue(BeZero()))
	worker := instance.Spec.Nodes[0]
	worker.HostName, worker.Role = "edge-2", "worker"
	instance.Spec.Nodes = append(instance.Spec.Nodes, worker)
	r, err = renderInstance(t, instance, taggedRelease)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.controlPlane.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(r.workers.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
}

func TestEachFieldOfClusterInstanceIsDocumented(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile("../../docs/ztp.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, text, _ := strings.Cut(string(content), "\n## ClusterInstance\n")
	cluster, node, found := strings.Cut(text, "\nOf each of the `nodes`:\n")
	g.Expect(found).To(BeTrue())
	node, _, _ = strings.Cut(node, "\n## ")
	for table, of := range map[string]any{cluster: siteconfig.Spec{}, node: siteconfig.Node{}} {
		names := []string{"pruneManifests"} // templates cannot read this field and the next one
		if table == cluster {
			names = append(names, "reinstall")
		}
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
		for _, name := range names {
			g.Expect(table).To(MatchRegexp("(?m)^\\|[^|]*`%s`[^|]*\\|", name), "%T", of)
		}
	}
}

// operatorUser is the ServiceAccount of the siteconfig operator.
const operatorUser = "system:serviceaccount:open-cluster-management:siteconfig-controller-manager"

// checkSiteconfig applies the rendered objects like the operator before it creates any object: as a dry run.
// The client has the operator's own rights and the rights that we ship.
func checkSiteconfig(ctx context.Context, t *testing.T, e *env.Env) {
	g, c := NewWithT(t), e.Client()
	templates, shipped := siteconfigTemplates(t)
	operator := as(t, e, operatorUser)
	try := func(object *unstructured.Unstructured) error {
		return operator.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("siteconfig"),
			client.ForceOwnership, client.DryRunAll)
	}
	own := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "siteconfig-manager-role"}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"agent-install.openshift.io"}, Resources: []string{"nmstateconfigs"},
			Verbs: []string{"create", "delete", "get", "patch", "update"},
		},
		{APIGroups: []string{"metal3.io"}, Resources: []string{"baremetalhosts"}, Verbs: []string{"create", "delete", "get", "patch", "update"}},
	}}
	g.Expect(c.Create(ctx, own)).To(Succeed())
	g.Expect(c.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "siteconfig-manager-rolebinding"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: own.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "open-cluster-management", Name: "siteconfig-controller-manager"}},
	})).To(Succeed())
	var objects []*unstructured.Unstructured
	for _, sample := range siteconfigSamples(t) {
		g.Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: sample.Namespace}})).To(Succeed())
		more, err := sample.Render(taggedRelease, templates...)
		g.Expect(err).NotTo(HaveOccurred())
		objects = append(objects, more...)
	}
	last := objects[len(objects)-1]
	g.Expect(apierrors.IsForbidden(try(last))).To(BeTrue(), "the operator's own rights exclude %s", last.GetKind())
	for _, object := range shipped {
		g.Expect(c.Create(ctx, &unstructured.Unstructured{Object: object})).To(Succeed())
	}
	for _, object := range objects {
		g.Eventually(func() error { return try(object) }, time.Minute).Should(Succeed(), "%s %s", object.GetKind(), object.GetName())
		for _, verb := range []string{"get", "delete"} {
			resource, _ := c.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
			needed := right{verb: verb, resource: resource.Resource.GroupResource().String()}
			g.Expect(may(ctx, t, c, operatorUser, object.GetNamespace(), needed)).To(BeTrue(), "%s %s", verb, object.GetKind())
		}
	}
}
