package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages load.
type asset struct {
	contentType, tag string
	plain, gzipped   []byte
}

// assets are the files by the names that pages use. An address has a hash of the content in it, so its content never
// changes.
type assets struct {
	files map[string]asset
	// paths are the addresses by the names of the files.
	paths map[string]string
	// modules are the addresses of the parts of main.js.
	modules []string
}

// builtAssets loads the files once: they are the same in each process.
var builtAssets = sync.OnceValues(loadAssets)

func loadAssets() (*assets, error) {
	out := &assets{files: map[string]asset{}, paths: map[string]string{}}
	entries, err := fs.ReadDir(assetFiles, "assets")
	if err != nil {
		return nil, fmt.Errorf("read the assets: %w", err)
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		plain, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the asset %s: %w", e.Name(), err)
		}
		sum := sha256.Sum256(plain)
		hash, extension := hex.EncodeToString(sum[:8]), path.Ext(e.Name())
		if err := out.add(e.Name(), strings.TrimSuffix(e.Name(), extension)+"."+hash+extension, hash, plain); err != nil {
			return nil, err
		}
	}
	return out, out.addModules()
}

// addModules adds the files of the folder modules. They name each other by relative paths, so their addresses have the
// hash of all of them as a folder.
func (a *assets) addModules() error {
	names, err := fs.Glob(assetFiles, "assets/modules/*.js")
	if err != nil {
		return fmt.Errorf("read the modules: %w", err)
	}
	all, texts := sha256.New(), map[string][]byte{}
	for _, name := range names {
		text, err := assetFiles.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read the module %s: %w", name, err)
		}
		texts[name] = text
		fmt.Fprintf(all, "%s\n%d\n%s", name, len(text), text)
	}
	hash := hex.EncodeToString(all.Sum(nil)[:8])
	for _, name := range names {
		short := strings.TrimPrefix(name, "assets/")
		if err := a.add(short, hash+"/"+path.Base(name), hash, texts[name]); err != nil {
			return err
		}
		if path.Base(name) != "main.js" {
			a.modules = append(a.modules, a.paths[short])
		}
	}
	return nil
}

// add adds a file at an address with a hash.
func (a *assets) add(name, address, hash string, plain []byte) error {
	gzipped, err := compress(plain)
	if err != nil {
		return fmt.Errorf("compress the asset %s: %w", name, err)
	}
	a.files[address] = asset{contentType: mime.TypeByExtension(path.Ext(name)), tag: `"` + hash + `"`, plain: plain, gzipped: gzipped}
	a.paths[name] = Root + "/assets/" + address
	return nil
}

func compress(plain []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	return out.Bytes(), err
}

// serveAsset returns a file to any caller: it is the same in every app.
func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	a, ok := c.assets.files[r.PathValue("name")]
	if !ok {
		w.Header().Set("Cache-Control", "no-store")
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("ETag", a.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == a.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.contentType)
	write(w, r, http.StatusOK, a.plain, a.gzipped)
}

// write sends a body, as gzip if the browser accepts that; to HEAD only its headers.
func write(w http.ResponseWriter, r *http.Request, status int, plain, gzipped []byte) {
	body := plain
	if gzipped != nil && acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		body = gzipped
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // ignore a browser that disconnected
	}
}

func acceptsGzip(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(strings.TrimSpace(coding), ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") && strings.ReplaceAll(parameters, " ", "") != "q=0" {
				return true
			}
		}
	}
	return false
}
