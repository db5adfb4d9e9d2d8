set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'p99.png'
set title '99th percentile of the latency: 128-byte answer, keep-alive'
set xlabel 'connections'
set ylabel 'p99 latency (ms)'
set logscale x
set logscale y
set grid
set samples 200
set key above
plot 'p99-worker.dat' using 1:2 with points pointtype 2 linecolor rgb '#d55e00' title 'Regent worker', \
     'p99-worker.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d55e00' notitle, \
     'p99-classic.dat' using 1:2 with points pointtype 2 linecolor rgb '#0072b2' title 'Regent classic', \
     'p99-classic.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#0072b2' notitle, \
     'p99-native.dat' using 1:2 with points pointtype 2 linecolor rgb '#7b3fb0' title 'Regent native', \
     'p99-native.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#7b3fb0' notitle, \
     'p99-respond.dat' using 1:2 with points pointtype 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) title 'Regent without PHP', \
     'p99-respond.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) notitle, \
     'p99-fpm.dat' using 1:2 with points pointtype 2 linecolor rgb '#00865f' title 'nginx + php-fpm', \
     'p99-fpm.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#00865f' notitle, \
     'p99-apache.dat' using 1:2 with points pointtype 2 linecolor rgb '#c0508c' title 'Apache + mod_php', \
     'p99-apache.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#c0508c' notitle
