package module

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// packed is the time of every entry of a package: the first second of the format, so that the same files make the
// same bytes.
var packed = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Package writes a staged folder into a zip file for deployment: sorted, with the modes of the files, and the same
// bytes for the same files at any time and place. The file is replaced as a whole, and only on success.
func Package(dir, file string) (err error) {
	fresh, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".new.")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("pack %s into %s, which is as it was: %w", dir, file, err), os.Remove(fresh.Name()))
		}
	}()
	err = errors.Join(pack(dir, fresh), fresh.Chmod(0o644), fresh.Close())
	if err != nil {
		return err
	}
	return os.Rename(fresh.Name(), file)
}

// pack writes the regular files of a folder, in the order of their names.
func pack(dir string, to io.Writer) error {
	w := zip.NewWriter(to)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return packFile(w, dir, path, entry)
	})
	return errors.Join(err, w.Close())
}

func packFile(w *zip.Writer, dir, path string, entry fs.DirEntry) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	if !entry.Type().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	header := &zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate, Modified: packed}
	header.SetMode(0o644)
	if info.Mode()&0o100 != 0 {
		header.SetMode(0o755) // the platform starts the handler from the unpacked files
	}
	out, err := w.CreateHeader(header)
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(out, in)
	return err
}
