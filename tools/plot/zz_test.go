package main
import ("testing";"os";"gonum.org/v1/plot/vg/vgimg";"gonum.org/v1/plot/vg/draw")
func TestZZ(t *testing.T){
 text,_:=os.ReadFile(os.Getenv("ZZ"))
 f,err:=read(text); if err!=nil {t.Fatal(err)}
 for _,d:=range f.Dimensions {
  w,h:=d.size()
  c:=vgimg.NewWith(vgimg.UseWH(w,h),vgimg.UseDPI(110))
  if err:=d.drawOn(draw.New(c)); err!=nil {t.Fatal(err)}
  o,_:=os.Create("/tmp/scale/plots/"+d.Name+".png"); vgimg.PngCanvas{Canvas:c}.WriteTo(o); o.Close()
 }}
