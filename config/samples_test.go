package config_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// optional matches a setting that a sample shows but does not use: "  # key: value" or "  # - item".
var optional = regexp.MustCompile(`(?m)^( +)# ( *(?:[a-z][A-Za-z0-9./-]*:|- ).*)$`)

func TestSamplesAreAccepted(t *testing.T) {
	g, all := NewWithT(t), mustLoadSchemas(t)
	files, err := filepath.Glob("samples/*.yaml")
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

// admitAll validates every object of a YAML stream but those of Kubernetes itself.
func admitAll(ctx context.Context, all schemas, content []byte) error {
	objects, err := readManifests(bytes.NewReader(content))
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !strings.Contains(fmt.Sprint(object["apiVersion"]), ".") && object["apiVersion"] == "v1" {
			continue
		}
		if err := all.admit(ctx, object, nil); err != nil {
			return fmt.Errorf("%s: %w", object["kind"], err)
		}
	}
	return nil
}

// linked checks that whatever a sample refers to is in it.
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

// references lists what a part of an object refers to, as "kind name".
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

// variables are what the cluster templates ask the user for.
var variables = map[string]string{
	"CLUSTER_NAME": "lab", "BASE_DOMAIN": "example.com", "OPENSHIFT_VERSION": "4.19.10", "PULL_SECRET": `{"auths":{}}`,
	"API_VIP": "192.168.1.5", "INGRESS_VIP": "192.168.1.6", "MACHINE_NETWORK": "192.168.1.0/24",
	"CONTROL_PLANE_MACHINE_COUNT": "3", "WORKER_MACHINE_COUNT": "2",
	"IMAGE_URL": "http://images/rhcos.qcow2", "IMAGE_CHECKSUM": "http://images/rhcos.qcow2.sha256sum",
}

func TestClusterTemplatesAreAccepted(t *testing.T) {
	g, all := NewWithT(t), mustLoadSchemas(t)
	files, err := filepath.Glob("templates/cluster-template*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">=", 5))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			content, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			expanded := []byte(os.Expand(string(content), func(name string) string {
				g.Expect(variables).To(HaveKey(name))
				return variables[name]
			}))
			g.Expect(admitAll(t.Context(), all, expanded)).To(Succeed())
			g.Expect(linked(expanded)).To(Succeed())
			for _, fixed := range []string{"lab.example.com", "192.168.111.", "placeholder before"} {
				g.Expect(string(content)).NotTo(ContainSubstring(fixed), "it is of the sample")
			}
		})
	}
}
