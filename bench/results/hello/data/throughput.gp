set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'throughput.png'
set title 'Throughput: 128-byte answer, keep-alive'
set xlabel 'connections'
set ylabel 'throughput (requests/s)'
set logscale x
set yrange [0:*]
set grid
set samples 200
set key above
plot 'throughput-worker.dat' using 1:2 with points pointtype 2 linecolor rgb '#d55e00' title 'Regent worker', \
     'throughput-worker.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d55e00' notitle, \
     'throughput-classic.dat' using 1:2 with points pointtype 2 linecolor rgb '#0072b2' title 'Regent classic', \
     'throughput-classic.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#0072b2' notitle, \
     'throughput-native.dat' using 1:2 with points pointtype 2 linecolor rgb '#7b3fb0' title 'Regent native', \
     'throughput-native.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#7b3fb0' notitle, \
     'throughput-respond.dat' using 1:2 with points pointtype 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) title 'Regent without PHP', \
     'throughput-respond.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#007f8c' dashtype (10,3,2,3,2,3) notitle, \
     'throughput-fpm.dat' using 1:2 with points pointtype 2 linecolor rgb '#00865f' title 'nginx + php-fpm', \
     'throughput-fpm.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#00865f' notitle, \
     'throughput-apache.dat' using 1:2 with points pointtype 2 linecolor rgb '#c0508c' title 'Apache + mod_php', \
     'throughput-apache.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#c0508c' notitle
