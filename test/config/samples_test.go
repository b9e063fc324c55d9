package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"sigs.k8s.io/yaml"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
)

// optional matches a setting that a sample shows but does not use: "  # key: value" or "  # - item".
var optional = regexp.MustCompile(`(?m)^( +)# ( *(?:[a-z][A-Za-z0-9./-]*:|- ).*)$`)

func TestSamplesAreAccepted(t *testing.T) {
	g, all := NewWithT(t), mustLoadSchemas(t)
	files, err := filepath.Glob("../../config/samples/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">=", 5))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(admitAll(t.Context(), all, content)).To(Succeed())
			g.Expect(admitAll(t.Context(), all, optional.ReplaceAll(content, []byte("$1$2")))).To(Succeed(), "with its optional settings")
			g.Expect(linked(content)).To(Succeed())
		})
	}
}

// typed are kinds of assisted-service and Hive, whose modules contain Go types but no schemas.
var typed = map[any]func() any{
	"NMStateConfig": func() any { return &aiv1beta1.NMStateConfig{} }, "ClusterImageSet": func() any { return &hivev1.ClusterImageSet{} },
}

// admitAll validates each object of a YAML stream except those of Kubernetes itself.
func admitAll(ctx context.Context, all schemas, content []byte) error {
	objects, err := readManifests(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !strings.Contains(fmt.Sprint(object["apiVersion"]), ".") && object["apiVersion"] == "v1" {
			continue
		}
		if newObject, ok := typed[object["kind"]]; ok {
			content, err := json.Marshal(object)
			if err == nil {
				err = yaml.UnmarshalStrict(content, newObject())
			}
			if err != nil {
				return fmt.Errorf("%s: %w", object["kind"], err)
			}
			continue
		}
		if err := all.admit(ctx, object, nil); err != nil {
			return fmt.Errorf("%s: %w", object["kind"], err)
		}
	}
	return nil
}

// linked checks that a sample contains each object that it refers to.
func linked(content []byte) error {
	objects, err := readManifests(bytes.NewReader(content))
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for _, object := range objects {
		present[fmt.Sprintf("%s %s", object["kind"], object["metadata"].(map[string]any)["name"])] = true
	}
	for _, object := range objects {
		for _, wanted := range references("", object) {
			if !present[wanted] {
				return fmt.Errorf("%s refers to %s, which is not in the sample", object["kind"], wanted)
			}
		}
	}
	return nil
}

// references lists the references in a part of an object, as "kind name".
func references(key string, value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		name := value["name"]
		switch {
		case strings.HasSuffix(key, "Ref") && value["kind"] != nil:
			found = append(found, fmt.Sprintf("%s %s", value["kind"], name))
		case key == "pullSecretRef":
			found = append(found, fmt.Sprintf("Secret %s", name))
		case key == "imageRegistryRef":
			found = append(found, fmt.Sprintf("ConfigMap %s", name))
		case key == "clusterImageSetRef":
			found = append(found, fmt.Sprintf("ClusterImageSet %s", name))
		}
		if cluster, ok := value["clusterName"]; ok && key == "spec" {
			found = append(found, fmt.Sprintf("Cluster %s", cluster))
		}
		for k, below := range value {
			found = append(found, references(k, below)...)
		}
	case []any:
		for _, below := range value {
			found = append(found, references(key, below)...)
		}
	}
	return found
}

// templates are the cluster templates of clusterctl, by the suffix of their names, with their samples and
// numbers of workers.
var templates = map[string]struct {
	sample, workers string
	// without are the objects of the sample that the template leaves to the user, as "kind name".
	without string
}{
	"":              {sample: "ha", workers: "2"},
	"-compact":      {sample: "compact"},
	"-sno":          {sample: "sno"},
	"-disk-image":   {sample: "ha-disk-image", workers: "2"},
	"-okd":          {sample: "okd", workers: "2"},
	"-arbiter":      {sample: "arbiter"},
	"-two-node":     {sample: "two-node"},
	"-dual-stack":   {sample: "dual-stack"},
	"-disconnected": {sample: "disconnected", without: "ConfigMap disconnected-mirrors"},
	"-proxy":        {sample: "proxy"},
	"-topology":     {sample: "clusterclass", workers: "2"},
}

var (
	// sampleValue matches the values in a sample that the variables of templates replace. With several matches,
	// the first one counts.
	sampleValue = map[string]*regexp.Regexp{
		"CLUSTER_NAME":                regexp.MustCompile(`(?m)kind: Cluster\nmetadata:\n  name: (.+)$`),
		"CONTROL_PLANE_MACHINE_COUNT": regexp.MustCompile(`(?m)replicas: (3|1)$`),
		"BASE_DOMAIN":                 regexp.MustCompile(`(?m)(?:baseDomain: |name: baseDomain\n +value: )((?:lab\.)?example\.com)$`),
		"OPENSHIFT_VERSION":           regexp.MustCompile(`(?:distributionVersion|value): (v?4\.\S+)`),
		"KUBERNETES_VERSION":          regexp.MustCompile(`(?m)^    version: (v1\.\S+)`),
		"PULL_SECRET":                 regexp.MustCompile(`'({"auths".*})'`),
		"API_VIP":                     regexp.MustCompile(`(?im)apiVIPs:?.*\n(?: +value:\n)? +- (\S+)$`),
		"INGRESS_VIP":                 regexp.MustCompile(`(?im)ingressVIPs:?.*\n(?: +value:\n)? +- (\S+)$`),
		"MACHINE_NETWORK":             regexp.MustCompile(`(?im)machineNetwork:?.*\n(?: +value:\n)? +- (\S+)$`),
		"IPV6_API_VIP":                regexp.MustCompile(`(?m)apiVIPs:.*\n.*\n +- (\S+)$`),
		"IPV6_INGRESS_VIP":            regexp.MustCompile(`(?m)ingressVIPs:.*\n.*\n +- (\S+)$`),
		"IPV6_MACHINE_NETWORK":        regexp.MustCompile(`(?m)machineNetwork:.*\n.*\n +- (\S+)$`),
		"IMAGE_URL":                   regexp.MustCompile(`(?m)url: (.+qcow2)$`),
		"IMAGE_CHECKSUM":              regexp.MustCompile(`(?m)checksum: (.+sha256sum)$`),
		"CLUSTER_HTTP_PROXY":          regexp.MustCompile(`httpProxy: (\S+)`),
		"CLUSTER_HTTPS_PROXY":         regexp.MustCompile(`httpsProxy: (\S+)`),
		"CLUSTER_NO_PROXY":            regexp.MustCompile(`noProxy: (\S+)`),
		"NTP_SERVER":                  regexp.MustCompile(`(?m)additionalNTPSources:.*\n +- (\S+)$`),
		"RELEASE_IMAGE":               regexp.MustCompile(`releaseImage: (\S+)`),
		"MIRRORS_CONFIG_MAP":          regexp.MustCompile(`imageRegistryRef:.*\n +name: (\S+)`),
	}
	// fixedValue matches values of a sample that no user shares.
	fixedValue = regexp.MustCompile(`lab\.example\.com|[^.]\bexample\.com$|192\.168\.111\.|192\.0\.2\.|2001:db8|placeholder before`)
)

// A template is its sample (which the end-to-end tests install) with variables. The values of the sample turn
// the template into the sample again.
func TestClusterTemplatesEqualSamplesWithVariables(t *testing.T) {
	g, all := NewWithT(t), mustLoadSchemas(t)
	files, err := filepath.Glob("../../config/templates/cluster-template*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).To(HaveLen(len(templates)))
	used := map[string]bool{}
	for flavor, of := range templates {
		t.Run("template"+flavor, func(t *testing.T) {
			g := NewWithT(t)
			sample := content(t, "../../config/samples/"+of.sample+".yaml")
			template := content(t, "../../config/templates/cluster-template"+flavor+".yaml")
			g.Expect(fixedValue.FindAllString(template, -1)).To(BeEmpty(), "the template must not have values of the sample")
			expanded := os.Expand(template, func(name string) string {
				used[name] = true
				if name == "WORKER_MACHINE_COUNT" {
					g.Expect(of.workers).NotTo(BeEmpty(), "the template has no workers")
					return of.workers
				}
				g.Expect(sampleValue).To(HaveKey(name))
				value := sampleValue[name].FindStringSubmatch(sample)
				g.Expect(value).NotTo(BeEmpty(), name)
				return value[1]
			})
			if strings.HasSuffix(flavor, "-topology") {
				expanded = content(t, "../../config/templates/clusterclass-agent.yaml") + "\n---\n" + expanded
			}
			wanted, made := byName(t, sample), byName(t, expanded)
			if of.without != "" {
				g.Expect(wanted).To(HaveKey(of.without))
				delete(wanted, of.without)
			}
			g.Expect(made).To(Equal(wanted))
			g.Expect(admitAll(t.Context(), all, []byte(expanded))).To(Succeed())
		})
	}
	g.Expect(used).To(HaveLen(len(sampleValue)+1), "sampleValue has variables that no template uses: remove them")
}

func content(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// byName returns the objects of a YAML stream, by "kind name".
func byName(t *testing.T, stream string) map[string]map[string]any {
	t.Helper()
	objects, err := readManifests(strings.NewReader(stream))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	found := map[string]map[string]any{}
	for _, object := range objects {
		found[fmt.Sprintf("%s %s", object["kind"], object["metadata"].(map[string]any)["name"])] = object
	}
	NewWithT(t).Expect(found).To(HaveLen(len(objects)))
	return found
}
